"""`compare RUN --whatif SETUP`: a measured run beside what the model of training says, of its own setup or another."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analyzers.time.step_accounts import StepAccounts
from app.comparing import modelled_words as words
from app.comparing.modelled import BEYOND, OWN, beside_model
from app.comparing.modelled import _rows as rows
from app.mcp.tools.compare import COMPARE
from app.pages.compare import MODEL
from app.whatif.training.measured import ran
from errors import QuestionError
from tests.app.commands import out
from tests.app.test_pages import opened
from tests.app.test_pages import words as page_words
from tests.app.test_whatif_training_measured import STEP_S, answered, trained


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    from app.workspace import workspace

    place = workspace(str(tmp_path_factory.mktemp("beside") / "store"))
    trained(place)
    return place


def test_its_own_setup_stands_beside_it_with_the_models_own_range(kept):
    found, planned = beside_model("llama-70b", "same", kept), ran("llama-70b", kept).planned
    assert (found.step.a, found.step.b) == (pytest.approx(STEP_S), planned.step_s)
    assert (found.low_s, found.high_s) == (planned.low_s, planned.high_s) and found.rows == ()
    assert found.low_s < planned.step_s < found.high_s
    assert found.within == (planned.low_s <= STEP_S <= planned.high_s)
    assert any("No profile shows kept steps" in note for note in found.notes)
    assert beside_model("llama-70b", "", kept).to_dict() == found.to_dict()


def test_a_step_is_said_to_be_within_or_beyond_the_range(kept):
    planned = ran("llama-70b", kept).planned
    for name, step_s, way in (
        ("usual", planned.step_s, "within"),
        ("slow", 1.25 * planned.high_s, "25 % longer"),
        ("quick", 0.9 * planned.low_s, "10 % shorter"),
    ):
        trained(kept, name, step_s)
        found = beside_model(name, "same", kept)
        assert way in words.verdict(found) and found.told == (name != "usual"), words.verdict(found)


def test_another_setup_is_what_the_run_is_carried_over_to(kept):
    found, plan = beside_model("llama-70b", "on=h100 layout=tp=4,fsdp=64", kept), answered
    _, other = plan(kept, on="h100", layout="tp=4,fsdp=64").carried
    assert (found.step.a, found.step.b) == (pytest.approx(STEP_S), other.step.after_s)
    assert (found.low_s, found.high_s) == other.band_s and found.low_s < found.step.b < found.high_s
    assert sum(r.measured_s for r in found.rows) == pytest.approx(STEP_S)
    assert sum(r.modelled_s for r in found.rows) == pytest.approx(found.step.b)
    assert all(r.how for r in found.rows) and "is likely to take" in words.verdict(found)


def test_accounts_stand_together_as_far_as_the_model_tells_them_apart_and_none_is_lost(kept):
    planned = ran("llama-70b", kept).planned
    rng = np.random.default_rng(0)
    measured = {
        "useful_maths": 10.0,
        "padding": 1.0,
        "recomputation": 2.0,
        "below_roofline": 9.0,
        "exposed_communication": 4.0,
        "input_wait": 3.0,
        "straggler_wait": 1.0,
    }
    seconds = pd.DataFrame({n: s * (1 + 0.01 * rng.normal(size=16)) for n, s in measured.items()})
    told = list(rows(StepAccounts(seconds, np.full(16, 5), 4, 80), planned.accounts))
    by = {r.account: r for r in told}
    assert sum(r.measured_s for r in told) == pytest.approx(float(seconds.mean().sum()))
    assert sum(r.modelled_s for r in told if r.modelled_s is not None) == pytest.approx(planned.step_s)
    assert by[BEYOND].measured_s == pytest.approx(
        float(seconds[["padding", "recomputation", "below_roofline"]].sum(axis=1).mean())
    )
    assert {r.account for r in told if r.modelled_s is None} == {"input_wait", "straggler_wait"}
    assert by["useful_maths"].low < by["useful_maths"].change_s < by["useful_maths"].high
    own = [n for n in OWN if n in by]
    assert [r.account for r in told][: len(own)] == own and len(own) >= 3
    found = replace(beside_model("llama-70b", "same", kept), rows=tuple(told))
    said = words.verdict(found).whole
    assert "The model has no term for input wait (3.0" in said and "straggler" not in said  # 3 % of a step of 30 s
    assert words.table(found).rows[-1][0] == "Step" and len(words.table(found).rows) == len(told) + 1


def test_the_command_tells_it_and_refuses_what_cannot_be(kept, capsys, monkeypatch):
    monkeypatch.setenv("CHIPLEDGER_STORE", str(kept.store.root))
    code, text, _ = out(capsys, "compare", "llama-70b", "--whatif", "same", "--json")
    told = json.loads(text)
    assert code == 0 and told["step_time"]["b_low_s"] < told["step_time"]["b_s"] < told["step_time"]["b_high_s"]
    assert told["step_time"]["b_basis"] == "modelled" and told["verdict"]
    code, text, _ = out(capsys, "compare", "llama-70b", "--whatif", "chips=512")
    assert code == 0 and "512" in text and "account of a step" in text
    for given, said in (
        (("llama-70b",), "compared with nothing"),
        (("llama-70b", "llama-70b", "--whatif", "same"), "beside another run"),
        (("llama-70b", "--whatif", "same", "--fail-if", "step_time>+1%"), "beside another run, a gate"),
        (("nobody", "--whatif", "same"), "nobody"),
        *((("llama-70b", "--whatif", odd), said) for odd, said in ODD),
    ):
        code, text, error = out(capsys, "compare", *given)
        assert code == 2 and said in error and error.count("\n") == 1 and text == "", (given, error)


ODD = (
    ("chips=0", "chips"),
    ("chips=nan", "chips"),
    ("chips=1e308", "chips"),
    ("chips=512 chips=256", "twice"),
    ("chip=h100", "Did you mean 'chips'?"),
    ("make=gke", "setup 'make'"),
    ("calibrate=llama-70b", "setup 'calibrate'"),
    ("x" * 10_000, "setup"),
    ("same same", "setup 'same'"),
)


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"model": None}, "model"),
        ({"seq": None, "global_batch": None}, "seq"),
        ({"chip": "abacus"}, "abacus"),
    ],
)
def test_what_lacks_is_said_by_name(kept, facts, says):
    trained(kept, f"lacks {says}", **facts)
    with pytest.raises(QuestionError, match=says):
        beside_model(f"lacks {says}", "same", kept)


@pytest.mark.parametrize("step_s", [0.05, 9000.0])
def test_where_the_model_misses_the_run_by_more_than_a_factor_nothing_is_told(kept, step_s):
    trained(kept, f"far {step_s}", step_s)
    with pytest.raises(QuestionError, match="the model says"):
        beside_model(f"far {step_s}", "same", kept)


def test_the_page_tells_it_as_the_command_does(kept, monkeypatch):
    monkeypatch.setenv("CHIPLEDGER_STORE", str(kept.store.root))
    run = kept.store.find("llama-70b")
    for setup in ("same", "chips=512"):
        at = opened("pages/compare/page.py", run=run.run_id, **{"with": MODEL, "whatif": setup})
        assert not at.exception and at.text_input[0].value == setup
        said = words.verdict(beside_model(run.run_id, setup, kept))
        assert all(sentence in page_words(at) for sentence in (*said.said, *said.rest))
    at.text_input[0].set_value("chips=nan").run()
    assert not at.exception and at.query_params["whatif"] in ("chips=nan", ["chips=nan"]) and "chips" in page_words(at)


def test_agents_are_told_it_as_the_command_does(kept):
    told = COMPARE.answer(kept, {"a": "llama-70b", "whatif": "same"}, ())
    assert told.answer == beside_model("llama-70b", "same", kept).to_dict() and "~model" in told.links["page"]
    for given, said in (({}, "nothing"), ({"b": "llama-70b", "whatif": "same"}, "another run")):
        with pytest.raises(QuestionError, match=said):
            COMPARE.answer(kept, {"a": "llama-70b", **given}, ())
