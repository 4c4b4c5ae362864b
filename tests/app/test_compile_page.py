"""The page Compile for TPU: asks the compiler through the server, shows one compiled run, or two side by side."""

import pytest

from app.pages.compile import form as compile_form
from app.questions.asking import ask
from app.questions.compiled import COMPILED
from app.questions.compiled import figure as figures
from app.questions.compiled.words import comparison, table, verdict
from app.serve import compiling
from app.serve.compiling import CompileAsked, compile_request
from errors import InputError, QuestionError
from tests.analyzers.test_compiled import FACTS, TABLES
from tests.app import made_runs
from tests.app.serving import request, serving
from tests.app.test_pages import opened, words

PAGE = "pages/compile/page.py"
GOOD = {"model": "Llama 3.1 8B", "topology": "v6e:4x4", "mesh": "data=4,model=4", "seq": "1024", "batch": 16}


def compiled_run(place, name="llama v6e:4x4", **facts):
    said = {**FACTS, "model": "llama3.1-8b", "model_flops_per_step": 1e14, **facts}
    out = said["outcome"] == "out_of_memory"
    return made_runs.write(place.store, name, {} if out else TABLES, said, kind="compiled")


@pytest.fixture
def two(place):
    out = {
        "outcome": "out_of_memory",
        "fits": False,
        "message": "Used 40G of 31G hbm",
        "needed_bytes": 40 << 30,
        "limit_bytes": 31 << 30,
        "topology": "v5e:4x4",
        "chip": "v5e",
    }
    return compiled_run(place), compiled_run(place, "llama v5e:4x4", **out)


def answers(place, *runs):
    return [(r.manifest.name, ask(COMPILED, r, {}, place.registry)) for r in runs]


def test_an_empty_store_teaches(place):
    at = opened(PAGE)
    assert not at.exception and "No compiled run is in this store yet" in words(at)
    assert "chipledger compile" in at.code[0].value


def test_without_the_compiler_the_form_is_off_and_runs_are_shown(place, two, monkeypatch):
    monkeypatch.setattr(compile_form, "missing", lambda: "not installed: pip install 'chipledger[tpu]'")
    at = opened(PAGE, run=two[0].run_id)
    assert "pip install" in words(at) and all(field.disabled for field in at.text_input)
    assert "It fits" in words(at)


def test_one_run_is_told_with_its_rule(place, two):
    at = opened(PAGE, run=two[0].run_id)
    assert not at.exception
    assert "It fits: 6.40 kB of 9.00 kB on each chip" in words(at) and "one layer, times 32" in words(at)
    assert [m.label.split(" ")[0] for m in at.metric] == ["Memory", "FLOPs", "Estimated", "Least", "MFU"]


def test_out_of_memory_is_told_in_the_compilers_words(place, two):
    at = opened(PAGE, run=two[1].run_id)
    assert not at.exception
    assert "It does not fit: it needs 42.9 GB of 33.3 GB on each chip, 9.66 GB too much." in words(at)
    assert any("Used 40G of 31G hbm" in c.value for c in at.code)


def test_two_runs_stand_side_by_side(place, two):
    at = opened(PAGE, run=two[0].run_id, against=two[1].run_id)
    assert not at.exception
    assert "It fits" in words(at) and "It does not fit" in words(at) and "What differs" in words(at)
    rows = {r["figure"]: r for r in comparison(*answers(place, *two))}
    assert rows["topology"]["llama v6e:4x4"] == "v6e:4x4" and rows["topology"]["llama v5e:4x4"] == "v5e:4x4"
    assert "mesh" not in rows and "seq" not in rows
    assert rows["bytes: peak"]["llama v5e:4x4"] == "42.9 GB"


def test_a_run_that_no_compiler_made_or_that_is_gone_is_passed_over(place, two):
    measured = made_runs.interrupted(place.store)
    for wanted in (measured.run_id, "ffffffff"):
        at = opened(PAGE, run=wanted)
        assert not at.exception and "Pick one, or two to compare" in words(at) and not at.metric


def test_figures_draw_what_the_answer_holds(place, two):
    named = answers(place, *two)
    result = named[0][1]
    bars = {t.name: sum(t.x) * 1e9 for t in figures.memory(named[:1]).data}
    assert bars.pop("peak: the most at once") == pytest.approx(result.bytes_per_chip["peak"])
    held = result.bytes_per_chip
    padding = held["arguments"] * (1300 - 900) / 1300
    assert bars["padding of the arguments"] == pytest.approx(padding, abs=1)
    assert sum(bars.values()) == pytest.approx(held["arguments"] + held["temporaries"])
    assert any("limit 9.00 kB" in a.text for a in figures.memory(named[:1]).layout.annotations)
    whole = {t.name: list(t.x) for t in figures.memory(named).data}
    assert whole["needed, not broken down"][1] * 1e9 == pytest.approx(40 << 30)
    drawn = figures.least(named).data[0]
    assert drawn.y[0] == "operations bound by computation" and max(drawn.x) == drawn.x[0]
    assert sum(drawn.x) == pytest.approx(result.to_dict()["seconds_bound"] * 1e3)
    assert list(figures.collectives(named).data[0].y)[0] == "all-reduce over model"
    assert [b.name for b in figures.arguments(result).data] == ["logical", "padding"]
    assert list(figures.cycles(result).data[0].y) == ["dot.2", "fusion.1"]
    assert figures.cycles(named[1][1]) is None and figures.arguments(named[1][1]) is None


def test_words_name_what_bounds_the_step(place, two):
    result = answers(place, two[0])[0][1]
    assert "operations bound by computation" in verdict(result) and "MFU can reach" in verdict(result)
    assert ("all-reduce over model", "520 MB in 66 executions") in table(result).rows


def test_a_request_is_checked_like_the_command(monkeypatch):
    monkeypatch.setattr(compiling, "missing", lambda: "")
    asked = compile_request(GOOD)
    assert asked == CompileAsked("llama3.1-8b", "v6e:4x4", "data=4,model=4", 1024, 16)
    assert asked.options() == ["--topology=v6e:4x4", "--mesh=data=4,model=4", "--seq=1024", "--batch=16"]
    monkeypatch.setattr(compiling, "missing", lambda: "no compiler here")
    with pytest.raises(QuestionError, match="no compiler here"):
        compile_request(GOOD)


@pytest.mark.parametrize(
    "harm",
    [
        {"model": "no such model"},
        {"model": "user.py:step"},
        {"model": "--help"},
        {"mesh": "data=3,model=4"},
        {"mesh": "nothing=4,model=4"},
        {"topology": "v9:4x4"},
        {"topology": ""},
        {"seq": "1e3"},
        {"seq": True},
        {"batch": 3},
        {"slices": 999},
        {"remat": "some"},
        {"mesh": "a\nb"},
        {"code": "import os"},
        {"model": 5},
    ],
)
def test_a_request_that_cannot_be_is_refused(harm):
    with pytest.raises((InputError, QuestionError)) as told:
        compile_request({**GOOD, **harm})
    assert "\n" not in str(told.value)


def test_the_api_refuses_with_one_sentence_and_starts_nothing(empty_store, asked):
    code, said = request("POST", f"{asked}/api/compile", {**GOOD, "mesh": "data=3"})
    assert code == 400 and "multiplies to 3" in said["error"]
    code, said = request("POST", f"{asked}/api/compile", {**GOOD, "function": "x.py:f"})
    assert code == 400 and "no field 'function' here" in said["error"]
    assert request("GET", f"{asked}/api/compile")[0] in (404, 405)
    code, said = request("GET", f"{asked}/api/published")
    assert code == 200 and len(said["runs"]) > 300
    assert not (empty_store / "compiled-cache").exists()


@pytest.mark.slow
@pytest.mark.skipif(bool(compiling.missing()), reason="the TPU compiler is not installed")
def test_the_api_cancels_a_compilation(tmp_path):
    with serving(tmp_path / "store") as address:
        code, job = request("POST", f"{address}/api/compile", GOOD)
        assert code == 200 and job["state"] in ("waiting", "running")
        code, job = request("DELETE", f"{address}/api/jobs/{job['job_id']}")
        assert job["state"] == "cancelled"
        assert request("GET", f"{address}/api/runs")[1]["runs"] == []


def test_after_a_refusal_the_next_request_is_the_one_that_is_typed(place, monkeypatch):
    begun = []
    monkeypatch.setattr(compile_form, "missing", lambda: "")
    monkeypatch.setattr(compiling, "missing", lambda: "")
    monkeypatch.setattr(compile_form, "follow", lambda *given: begun.append(given[2]) or (None, None, False))
    at = opened(PAGE, topology="v6e:2x2", mesh="fsdp=2,model=2", seq="512")
    assert {f.label: f.value for f in at.text_input}["Sequence length"] == "512"

    def submit(mesh):
        next(f for f in at.text_input if f.label == "Mesh").set_value(mesh)
        at.button[0].click().run()

    submit("fsdp=3")
    assert "multiplies to 3" in words(at) and not begun
    submit("fsdp=4")
    assert not at.warning and begun[-1]["mesh"] == "fsdp=4" and begun[-1]["topology"] == "v6e:2x2"
