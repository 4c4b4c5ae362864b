"""The memory page: of a profile, of samples, of a compile, of a model alone, of a run that tells nothing."""

import json

import numpy as np
import pytest

from analyzers.device import memory
from app import theme
from app.cli import main
from app.questions.memory.figure import (
    COLOURS,
    MAX_POINTS,
    fill,
    over_time,
    segments,
    short,
    tiles,
    treemap,
)
from app.questions.memory.view import filled
from app.questions.memory.words import CATEGORIES, table, verdict
from errors.options import parse_options
from runs.run import facts_of
from runs.schema import BUFFER_CATEGORIES
from runs.tables import MemoryTables
from tests.analyzers.test_memory import GB, SECOND, columns, sampled, tables
from tests.app import made_runs
from tests.app.test_pages import ODD, opened, words

PAGE = "questions/memory/page.py"


def answered(given=None, facts=None, **options):
    return memory.analyze(MemoryTables(given or {}), facts_of(facts or {}), parse_options(memory.OPTIONS, options))


def write(store, given, facts=None, kind="training"):
    return made_runs.write(store, f"memory {kind}", given, facts or {}, kind=kind)


COMPILE = {
    "memory": columns(
        [
            {"kind": "argument", "capture": 0, "program": 0, "name": "w", "bytes": 9 * GB, "padded_bytes": 10 * GB},
            {"kind": "arguments", "capture": 0, "program": 0, "padded_bytes": 10 * GB},
            {"kind": "peak", "capture": 0, "program": 0, "padded_bytes": 12 * GB},
            {"kind": "bytes_limit", "capture": 0, "bytes": 16 * GB},
        ],
        ("kind", "capture", "program", "name", "bytes", "padded_bytes"),
    ),
    "modules": {"capture": [0], "program": [0], "name": ["step"]},
}
REFUSED = {"outcome": "out_of_memory", "fits": False, "needed_bytes": 20 * GB, "limit_bytes": 16 * GB}


def test_samples_of_an_unnamed_host_and_of_no_time_are_told_as_far_as_they_are_known():
    rows = sampled([(0, 1, 4, 1, 95), (0, 2, 9, 21, 70), (1, 1, 500, 0, 500)])
    rows["memory"]["host"] = [None] * len(rows["memory"]["host"])
    first = [t if d == 0 else None for d, t in zip(rows["memory"]["device"], rows["memory"]["ts_ns"], strict=True)]
    rows["memory"]["ts_ns"] = first
    told = answered(rows)
    figure = over_time(told)
    assert [line.name for line in figure.data] == ["device 0"]
    assert [a.text for a in figure.layout.annotations if a.text.startswith("peak")] == ["peak 30 bytes"]
    assert verdict(told).startswith("The fullest device held 500 bytes of the 1.00 kB it may use")


def test_the_verdict_tells_what_samples_missed():
    rows = sampled([(0, 1, 20, 0, 80), (1, 1, 30, 0, 70)])
    rows["memory"]["bytes"] = [{21: 88}.get(value, value) for value in rows["memory"]["bytes"]]
    assert verdict(answered(rows)) == (
        "At the samples the fullest device held 30 bytes of the 100 bytes it may use (30 %). Before or between them a "
        "device held up to 88 bytes (88 %), as its allocator counted."
    )


def test_verdicts():
    assert verdict(answered(tables(), {"chip": "v5p"})) == (
        "jit_step needs 11.0 GB on each device at its fullest, of the 103 GB that a device lets it use (11 %). Inputs "
        "are 55 % of it, and padding 9 %. Sharding what devices hold alike would give back 3.75 GB."
    )
    assert verdict(answered(sampled([(0, 1, 3 * GB, GB, 12 * GB)]))) == (
        "The fullest device held 4.00 GB of the 16.0 GB it may use (25 %)."
    )
    assert verdict(answered(COMPILE, {"outcome": "compiled", "fits": True})).startswith(
        "It fits: step needs 12.0 GB on a device of the 16.0 GB it may use (75 %)."
    )
    assert verdict(answered({}, REFUSED)) == (
        "It does not fit: the compiler needs 20.0 GB on a device and may use 16.0 GB."
    )
    assert "refused" in verdict(answered({}, {"outcome": "out_of_memory", "fits": False}))
    dump = {"memory": {k: v[:1] for k, v in COMPILE["memory"].items()}, "modules": COMPILE["modules"]}
    assert "its peak is not told" in verdict(answered(dump, {"outcome": "compiled"}))
    formula = answered(facts={"model": "llama3.1-8b"}, chip="v5p", fsdp=8, remat="full")
    assert verdict(formula).startswith("Training llama3.1-8b holds") and "it fits; up to" in verdict(formula)
    assert "it does not fit." in verdict(answered(facts={"model": "llama3.1-405b"}, chip="v5e"))


def test_the_table_tells_each_buffer():
    printed = table(answered(tables()))
    assert printed.rows[0] == ("params['w']", "Inputs", "4.00 GB", "5.00 GB", "4", "bf16[10,100]{1,0:T(8,128)}")
    assert printed.rows[1][5] == "model.py:3" and len(printed.rows) == 5


def test_every_category_has_a_name_and_a_colour():
    assert set(BUFFER_CATEGORIES) <= set(CATEGORIES)
    assert set(CATEGORIES) | {"padding"} == set(COLOURS)
    assert set(COLOURS.values()) <= set(theme.COLOURS.values())


def test_segments_add_up_to_what_is_held():
    result = answered(tables())
    drawn = dict(segments(result))
    assert drawn == {"argument": 5 * GB, "saved": 3 * GB, "temporary": GB, "fragmentation": GB, "padding": GB}
    assert sum(drawn.values()) == result.parts_bytes
    figure = fill({"": result})
    assert sum(bar.x[0] for bar in figure.data) == pytest.approx(result.parts_bytes / 1e9)
    hatched = {bar.name for bar in figure.data if bar.marker.pattern.shape}
    assert hatched == {"Padding", "Fragmentation"}


def test_of_a_refused_program_the_inputs_are_not_taken_for_all_that_it_needs():
    dump = {"memory": {k: v[:1] for k, v in COMPILE["memory"].items()}, "modules": COMPILE["modules"]}
    refused = answered(dump, REFUSED)
    assert refused.inputs_only and refused.untold_bytes == 10 * GB
    assert dict(segments(refused)) == {"argument": 9 * GB, "untold": 10 * GB, "padding": GB}
    figure = fill({"": refused})
    assert sum(bar.x[0] for bar in figure.data) == pytest.approx(20) and figure.layout.shapes[0].x0 == 16
    assert filled(refused) == (
        "Of what step needs, 10.0 GB are inputs; hatched: 10.0 GB of which the compiler told the sum alone, and "
        "padding."
    )
    assert not any("not known" in note for note in refused.notes)
    assert "of the inputs" in tiles(refused.parts, "the inputs").iloc[1]["hover"]
    whole = answered(COMPILE, {"outcome": "compiled", "fits": True})
    assert whole.untold_bytes is None and filled(whole) == "step holds 12.0 GB at its fullest; hatched: padding."
    unknown = answered(dump, {"outcome": "compiled"})
    assert unknown.untold_bytes is None and filled(unknown) == "step holds 10.0 GB as inputs; hatched: padding."


def test_a_near_limit_is_a_line_and_a_far_one_words():
    near, far = (answered(tables(), {"limit_bytes": n * GB}) for n in (12, 1200))
    assert len(fill({"": near}).layout.shapes) == 1
    figure = fill({"": far})
    assert not figure.layout.shapes and "109 times as much" in figure.layout.annotations[0].text


def test_tiles_nest_and_add_up():
    result = answered(tables())
    drawn = tiles(result.parts).set_index("id")
    top = drawn[drawn["parent"] == ""]
    assert top["size"].sum() == result.parts_bytes
    for key, row in drawn.iterrows():
        below = drawn[drawn["parent"] == key]["size"]
        assert not len(below) or below.sum() == pytest.approx(row["size"])
    padding = drawn[drawn["category"] == "padding"]
    assert list(padding["size"]) == [GB] and list(padding["parent"]) == ["argument/0"]
    shapes = treemap(result).data[0].marker.pattern.shape
    assert shapes.count("x") == 1 and "on 4 devices" in drawn.loc["argument/0", "hover"]


def test_many_buffers_become_one_tile():
    parts = [{"name": f"b{i}", "category": "temporary", "bytes": 10, "padded_bytes": 10} for i in range(500)]
    drawn = tiles(answered(tables(parts)).parts)
    assert len(drawn) < 130 and drawn["label"].iloc[-1].endswith("smaller")
    assert drawn[drawn["parent"] == "temporary"]["size"].sum() == 5000


def test_names_are_short_and_escaped():
    assert short("jit(step)/transpose(jvp(layer0))/mlp/dot_general") == "transpose(jvp(layer0))/mlp/dot_general"
    assert short("a/b/c/d/e") == "c/d/e" and short("x") == "x"
    parts = [{"name": ODD, "category": "temporary", "bytes": 10, "padded_bytes": 10, "source": ODD}]
    drawn = tiles(answered(tables(parts)).parts)
    assert "<img" not in drawn["label"].iloc[-1] + drawn["hover"].iloc[-1]


def test_samples_are_reduced_and_keep_their_peak():
    n = 40_000
    used = (np.arange(n) % 50).tolist()
    used[12_345] = 777
    given = {
        "memory": {
            "kind": ["bytes_in_use"] * n,
            "host": ["a"] * n,
            "device": [0] * n,
            "bytes": used,
            "ts_ns": (np.arange(n) * SECOND).tolist(),
        }
    }
    figure = over_time(answered(given))
    assert len(figure.data[0].x) <= MAX_POINTS and max(figure.data[0].y) == 777
    assert over_time(answered(tables())) is None


@pytest.mark.parametrize(
    ("given", "facts"),
    [
        (tables(), {"chip": "v5p"}),
        (sampled([(0, 1, GB, 0, 9 * GB), (0, 2, 3 * GB, 0, 7 * GB)]), {}),
        (COMPILE, {"outcome": "compiled", "fits": True}),
        ({"modules": COMPILE["modules"]}, REFUSED),
    ],
)
def test_the_page_of_a_run(place, given, facts):
    at = opened(PAGE, run=write(place.store, given, facts).run_id)
    assert not at.exception and not at.warning and not at.info
    assert verdict(answered(given, facts)) in words(at)


def test_the_page_of_a_model(place):
    at = opened(PAGE, model="llama3.1-70b", tp="8", fsdp="8", remat="selective")
    assert not at.exception
    expected = answered(facts={"model": "llama3.1-70b"}, chip="v5p", tp=8, fsdp=8, remat="selective", seq=8192)
    assert verdict(expected) in words(at)


def test_a_run_that_tells_nothing_is_told_how(place):
    at = opened(PAGE, run=made_runs.write(place.store, "bare", {"scalars": {"name": ["x"], "value": [1.0]}}, {}).run_id)
    assert not at.exception and "it carries programs with their buffers" in words(at)


def test_the_command_prints_the_same(place, capsys):
    run = write(place.store, tables(), {"chip": "v5p"})
    main(["show", run.run_id, "memory", "--json"])
    said = json.loads(capsys.readouterr().out)
    assert said["run_id"] == run.run_id and said["peak_bytes"] == 11 * GB and said["padding_bytes"] == GB
    main(["show", "model:llama3.1-8b", "memory", "--option", "chip=v5p", "--option", "remat=full"])
    assert "Training llama3.1-8b holds" in capsys.readouterr().out


def test_a_training_log_that_names_its_model_is_answered_by_formula(place):
    steps = {"step": [0, 1], "start_ns": [0, 10**9], "source": ["x"] * 2}
    run = made_runs.write(place.store, "logged", {"steps": steps}, {"model": "llama3.1-8b", "chip": "TPU v5p"})
    at = opened(PAGE, run=run.run_id)
    assert not at.exception and not at.warning
    assert "llama3.1-8b" in words(at).lower() or "Training" in words(at)
