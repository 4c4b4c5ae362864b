"""The page of published runs: filters, the row that was clicked, and the user's run among its likes."""

import math

import pytest

from analyzers.flops.published import reviewed
from app.pages.published.figure import Own, placed, scatter, x_of, y_of
from app.pages.published.own_run import own_run
from app.pages.published.words import details, frame, verdict
from tests.app import made_runs
from tests.app.test_pages import opened, words

PAGE = "pages/published/page.py"
V5E = [r for r in reviewed() if r.run.chip == "TPU v5e"]
OWN = Own(
    name="mine <b>",
    convention="causal",
    chip="TPU v5p",
    precision="bf16",
    chips=256.0,
    parameters=70e9,
    utilisation=0.45,
    bf16_utilisation=0.45,
    flops_per_s_per_chip=0.45 * 459e12,
)


def test_filters_come_from_the_address(place):
    at = opened(PAGE, chip="TPU v5e", convention="noncausal")
    assert not at.exception
    sound = [r for r in V5E if not r.contradictions]
    assert f"Half of {len(sound)} published runs reach" in words(at) and len(sound) == len(V5E) - 1
    at = opened(PAGE, chip="TPU v5e", precision="fp4")
    assert "No published run fits this choice" in words(at)
    assert not opened(PAGE, chip="nonsense", convention="<b>", row="none").exception


def test_a_chosen_row_tells_its_source_and_its_contradiction(place):
    wrong = next(r for r in reviewed() if r.run.printed.get("mfu_percent") == "38.55")
    at = opened(PAGE, row=wrong.run.id)
    assert "38.55 % contradicts the printed tokens per second" in words(at)
    assert wrong.run.source in words(at).replace("\u2060", "")
    assert dict(details(wrong))["printed MFU (%)"] == "38.55"


def test_a_run_is_drawn_among_those_counted_the_same_way(place):
    steps = {
        "step": list(range(20)),
        "start_ns": [made_runs.START_NS + i * 20 * made_runs.S for i in range(20)],
        "dur_ns": [20 * made_runs.S] * 20,
        "attempt": [0] * 20,
        "order": list(range(20)),
        "tokens_per_s_per_chip": [400.0] * 20,
    }
    facts = {"chip": "TPU v5p", "chips": 256, "model": "llama3.1-70b", "seq": 8192}
    run = made_runs.write(place.store, "seventy", {"steps": steps}, facts)
    own, why = own_run(run.run_id, place, "causal")
    assert why == "" and own.chips == 256 and own.parameters == pytest.approx(70.6e9, rel=0.01)
    assert own.utilisation == pytest.approx(400 * 449.22e9 / 459e12, rel=1e-3)  # GFLOPs per token as published
    at = opened(PAGE, run=run.run_id, convention="causal")
    assert not at.exception and "published runs counted the same way" in words(at)
    sound = [r for r in reviewed() if r.run.convention == "causal" and r.utilisation is not None]
    better = sum(r.utilisation < own.utilisation for r in sound)
    assert f"above {better} of {len(sound)} published runs" in words(at)


def test_a_run_that_is_not_there_is_told(place):
    own, why = own_run("ffff", place, None)
    assert own is None and "cannot be drawn among them" in why
    at = opened(PAGE, run="ffffffff")
    assert not at.exception and "cannot be drawn among them" in words(at)


@pytest.mark.parametrize("measure", ["mfu", "emfu", "tflops"])
@pytest.mark.parametrize("over", ["chips", "parameters"])
def test_every_run_with_both_coordinates_is_drawn_once(measure, over):
    rows = reviewed()
    figure = scatter(rows, measure, over)
    drawn = [i for trace in figure.data for i in trace.customdata]
    assert sorted(drawn) == sorted(r.run.id for r in rows if placed(r, measure, over))
    by_id = {r.run.id: r for r in rows}
    for trace in figure.data:
        for x, y, symbol, run_id in zip(trace.x, trace.y, trace.marker.symbol, trace.customdata, strict=True):
            assert (x, y) == (x_of(by_id[run_id], over), y_of(by_id[run_id], measure))
            assert symbol.endswith("-open") == bool(by_id[run_id].contradictions)


def test_the_users_run_is_a_star_and_its_name_no_markup():
    star = scatter(V5E, "mfu", "chips", OWN).data[-1]
    assert star.marker.symbol == "star" and list(star.y) == [45.0] and "&lt;b&gt;" in star.text[0]
    nowhere = Own(**{**vars(OWN), "parameters": None})
    assert all(t.marker.symbol != "star" for t in scatter(V5E, "mfu", "parameters", nowhere).data)


def test_the_verdict_leaves_out_what_contradicts_itself():
    rows = [r for r in reviewed() if r.run.model == "llama3.1-405b" and r.run.chip in ("TPU v6e", "B200")]
    sound = [r for r in rows if not r.contradictions]
    text = verdict(rows, None)
    assert f"Half of {len(sound):,} published" in text and "contradict themselves and are drawn hollow" in text
    assert verdict([], None) == "No published run fits this choice."


def test_the_table_holds_every_figure_and_source():
    table = frame(reviewed())
    assert len(table) == len(reviewed()) and table["source"].notna().all() and table["id"].is_unique
    row = table[table["mfu_printed"] == 0.611].iloc[0]
    assert math.isclose(row["utilisation"], 120 / 197) and row["tflops_per_s_per_chip"] == 120
    assert frame([]).empty
