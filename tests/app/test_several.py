"""Several runs on the command line, over the API, for agents and on their page; a baseline on pages of questions."""

import json
import re
from types import SimpleNamespace

import pytest

from app.cli import main
from app.comparing.several import words
from app.comparing.several.answer import several
from app.comparing.several.growing import grown
from app.comparing.several.reading import steps_of
from app.comparing.sides import compare_jobs
from app.components.baseline import changed
from app.components.figures_row import Figure
from app.library.table import Table
from app.mcp.calling import call
from app.mcp.tools import tool
from app.pages.library.acting import _comparable
from errors import QuestionError
from tests.analyzers.worlds import World
from tests.analyzers.worlds import _append as joined
from tests.app.made_runs import write
from tests.app.serving import get, serving
from tests.app.test_compare_jobs import ODD, job
from tests.app.test_pages import opened
from tests.app.test_pages import words as seen

PAGE = "pages/several/page.py"


@pytest.fixture
def four(place):
    """Three of one job, of which two differ in their chips alone, and a server."""
    facts = {"model": "llama3.1-8b", "seq": 4096, "global_batch": 64}
    return (
        job(place.store, "a", 1.0, seed=1, **facts),
        job(place.store, "b", 0.52, seed=2, **facts | {"chips": 8}),
        job(place.store, ODD, 1.2, seed=3, **facts | {"precision": "int8"}),
        write(place.store, "served", {}, {"chip": "TPU v5p", "chips": 4}, kind="serving"),
    )


def profiled_at_first(store, name, **facts):
    """A job of 60 steps, of which a profile saw the first nine."""
    log, seen = World(steps=60, profiled=()).tables(), World(steps=9).tables(goodput=False)
    tables = {table: seen.arrow(table).to_pydict() for table in ("captures", "collectives", "ops", "op_events")}
    tables |= {table: log.arrow(table).to_pydict() for table in ("steps", "lifecycle")}
    joined(tables["steps"], seen.arrow("steps").to_pydict())
    return write(store, name, {t: columns for t, columns in tables.items() if any(map(len, columns.values()))}, facts)


def ids(runs):
    return ",".join(r.run_id for r in runs)


def test_what_eats_a_series_is_told_by_a_profile_of_few_of_many_steps(place):
    for chips in (4, 8):
        profiled_at_first(place.store, f"on {chips}", chip="TPU v5p", chips=chips, global_batch=64)
    found = several(place, ("on 4", "on 8"), numbers="now")
    (series,) = grown(found).series
    a, b = found.chosen.runs
    assert len(steps_of(a).profiled) == 8 and not set(steps_of(a).profiled) & set(steps_of(a).step)
    accounts = compare_jobs(a, b, place).ledger
    assert accounts and {n: s for n, s in series.points[1].accounts.items() if s} == {c.account: c.b for c in accounts}
    assert sum(series.points[1].eaten.values()) == pytest.approx(0.5)


def test_three_runs_are_laid_beside_one_another_and_two_are_compared_as_ever(place, four, capsys):
    assert main(["compare", "a", "b", ODD, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [r["name"] for r in told["runs"]] == ["a", "b", ODD] and told["baseline"] == four[0].run_id
    lines = {d["name"]: d for d in told["differs"]}
    assert lines["chips"]["values"] == [4, 8, 4] and "seq" not in lines
    assert {"name": "seq", "value": 4096} in told["same"]
    assert [s["name"] for s in told["told_by_some"]] == ["precision"]
    assert told["step_time"][0] is None
    assert told["step_time"][1]["low"] < -0.48 < told["step_time"][1]["high"] and told["step_time"][1]["told"]
    (series,) = told["scaling"]["series"]
    assert series["kind"] == "strong" and [p["chips"] for p in series["points"]][0] == 4
    assert main(["compare", "a", "b", "--json"]) == 0
    assert "ledger" in json.loads(capsys.readouterr().out)
    assert main(["compare", "a", "b", ODD]) == 0
    said = capsys.readouterr().out
    assert "3 runs: usual step goes from" in said and "Strong scaling" in said


def test_a_run_whose_name_holds_a_comma_can_be_named(place, four):
    named = job(place.store, "54 days on 16,384 chips", 1.1, seed=4)
    one = f"{named.manifest.name},a, b"
    for texts, split in (([one], True), ([named.manifest.name, "a,b"], True), ([named.manifest.name, "a", "b"], False)):
        found = several(place, texts, split=split)
        assert [m.name for m in found.members] == [named.manifest.name, "a", "b"] and not found.said
    with pytest.raises(QuestionError, match="no run 'a,b'"):
        several(place, ["a,b"], split=False)


def test_gates_are_asked_of_two_runs_alone(four, capsys):
    assert main(["compare", "a", "b", ODD, "--fail-if", "step_time>1%"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_what_cannot_be_compared_is_said_and_the_rest_is(place, four):
    found = several(place, [f"{ids(four)},a,nobody,{four[1].run_id[:14]}"], numbers="now")
    assert len(found.members) == 4
    notes = " ".join(found.notes)
    assert "2 runs were named twice, and compared once." in notes and "nobody" in notes
    assert "another kind: serving, not training" in notes
    place.store.remove(four[1].run_id)
    left = several(place, [ids(four)], numbers="now")
    assert [m.name for m in left.members] == ["a", ODD, "served"] and left.notes
    assert dict(grown(left).left_out).get("served") or not grown(left).series


def test_a_damaged_run_is_left_out_and_said(place, four):
    (place.store.runs_folder / four[2].run_id / "run.json").write_text("{")
    found = several(place, [ids(four[:3])], numbers="now")
    assert [m.name for m in found.members] == ["a", "b"] and "is left out" in " ".join(found.said)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({}, "no runs are chosen"),
        ({"runs": ["a"]}, "only a is left"),
        ({"runs": [",,, ,"]}, "no run is left"),
        ({"runs": ["x" * 10_000, "y"]}, "no run is left"),
        ({"q": "chip:nothing"}, "no run is left"),
        ({"q": "mfu<<3"}, "expected"),
        ({"runs": ["a,b"], "sort": "nonsense"}, "to sort by"),
        ({"runs": [",".join(str(n) for n in range(1000))]}, "1,000 runs"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(place, four, asked, why):
    with pytest.raises(QuestionError, match=why):
        several(place, **asked)


def test_however_many_names_are_given_the_store_is_looked_at_a_few_times(place, four, monkeypatch):
    looked, real = [], Table._update
    monkeypatch.setattr(Table, "_update", lambda kept: looked.append(kept) or real(kept))
    found = several(place, [",".join(["a", "b", *map(str, range(10))])])
    assert [m.name for m in found.members] == ["a", "b"] and len(looked) < 30


def test_runs_are_found_by_search_and_group_and_put_in_order(place, four):
    found = several(place, q="kind:training", sort="-step_time", numbers="now")
    assert [m.name for m in found.members] == [ODD, "a", "b"]
    by_name = several(place, q="kind:training", sort="name", numbers="now")
    assert [m.name for m in by_name.members] == ["a", "b", ODD]
    with pytest.raises(QuestionError, match="no run is left"):
        several(place, group="nobody/nothing")


def test_a_baseline_that_is_none_of_them_is_said(place, four):
    found = several(place, ["a,b"], baseline="served", numbers="now")
    assert found.baseline.name == "a" and "none of these runs" in " ".join(found.notes) and not found.named
    chosen = several(place, ["a,b"], baseline="b", sort="-chips", numbers="now")
    assert chosen.baseline.name == "b" and chosen.named


def test_the_api_and_agents_are_told_the_same(place, four):
    with serving(place.store.root) as address:
        code, told = get(f"{address}/api/several?runs=a,b&curve=step_time&over=time&smooth=3")
        assert code == 200, told
        drawn = told["curves"]["runs"][four[0].run_id]
        assert len(drawn["x"]) == len(drawn["y"]) == drawn["steps"] and drawn["x"][-1] < 0.1
        assert get(f"{address}/api/several")[0] == 400
        assert get(f"{address}/api/several?runs=a,b&smooth=nan")[0] == 400
        assert get(f"{address}/api/several?runs=a,b&curve=nothing")[0] == 400
    answer = json.loads(call(tool("compare_many"), {"runs": "a,b"}, place))["answer"]
    assert answer["baseline"] == four[0].run_id


def test_the_page_shows_what_differs_and_every_picture(place, four):
    several(place, [ids(four)], numbers="now")
    at = opened(PAGE, runs=ids(four), baseline=four[1].run_id)
    assert not at.exception
    text = seen(at)
    assert words.verdict(several(place, [ids(four)], baseline=four[1].run_id)) in text
    for head in ("What differs?", "How did it go, step by step?", "Which run gives more for less?", "Strong scaling"):
        assert head in text
    raw = "\n".join(e.value for kind in (at.markdown, at.caption) for e in kind)
    assert "<img" in text and re.search(r"(?<!\\)<img", raw) is None
    for more in ({"picture": "parallel"}, {"table": "across", "curve": "loss"}, {"over": "tokens"}):
        assert not opened(PAGE, runs=ids(four), **more).exception


def test_the_page_finds_runs_by_a_search_alone(place, four):
    at = opened(PAGE, q="kind:training")
    assert "What differs?" in seen(at) and "no run is left" not in seen(at)


@pytest.mark.parametrize(
    "asked", [{}, {"runs": "nobody"}, {"q": "a" * 3000}, {"runs": "a,b", "x": "zz", "smooth": "1e308", "sort": "?"}]
)
def test_the_page_never_ends_in_a_traceback(place, four, asked):
    assert not opened(PAGE, **asked).exception


def test_headline_figures_change_against_the_baseline_and_never_against_another_kind(place, four):
    at = opened("questions/steps/page.py", run=four[0].run_id, baseline=four[1].run_id)
    assert not at.exception
    usual = next(m for m in at.metric if m.label.startswith("Usual step"))
    assert usual.delta.startswith("+9") and usual.proto.color == usual.proto.MetricColor.RED
    assert "Changes are against b." in seen(at)
    other = opened("questions/steps/page.py", run=four[0].run_id, baseline=four[3].run_id)
    assert "another kind" in seen(other) and not any(m.delta for m in other.metric)
    none = opened("questions/steps/page.py", run=four[0].run_id, baseline="nobody")
    assert "There is no baseline" in seen(none) and not none.exception
    itself = opened("questions/steps/page.py", run=four[0].run_id, baseline=four[0].run_id)
    assert not any(m.delta for m in itself.metric) and "against" not in seen(itself)


def test_a_figure_changes_only_where_both_are_measured_alike():
    def figure(amount, better="more", basis="derived", alike="palm"):
        return Figure("MFU", "", "", basis, amount, better, alike=alike)

    assert changed([figure(0.5)], [figure(0.4)]) == {"MFU": ("+25 %", "more")}
    for other in (figure(0.4, basis="modelled"), figure(0.4, alike="job"), figure(None), figure(0.0)):
        assert changed([figure(0.5)], [other]) == {}
    assert changed([figure(0.5, better="")], [figure(0.4, better="")]) == {}


def test_the_list_of_runs_leads_here_and_refuses_one_run(place):
    with pytest.raises(QuestionError, match="1 run selected"):
        _comparable(place, ["a"])
    with pytest.raises(QuestionError, match="201 runs selected"):
        _comparable(place, [SimpleNamespace()] * 201)  # type: ignore[list-item]
    _comparable(place, ["a", "b", "c"])
