"""Baselines on the command line, in the API, for agents and on the page: one name, wherever two runs are compared."""

import json

import pytest

from app.baselines import find_run
from app.library import changes
from app.mcp.calling import call
from app.mcp.tools import tool
from errors import QuestionError
from tests.app.commands import out
from tests.app.serving import get, request, serving
from tests.app.test_compare_jobs import PAGE, job
from tests.app.test_pages import opened, words


@pytest.fixture
def two(place):
    return job(place.store, "a"), job(place.store, "b", 1.06, seed=2)


def told(capsys, *given):
    code, text, error = out(capsys, "baseline", *given, "--json")
    return code, json.loads(text), error


def test_a_name_is_set_accepted_told_and_removed(two, capsys):
    a, b = two
    assert told(capsys, "set", "main", "a", "--why", "release 1")[1]["baseline"]["run_id"] == a.run_id
    assert out(capsys, "compare", "baseline:main", "b", "--fail-if", "step_time>+1%")[0] == 3
    moved = told(capsys, "accept", "main", "b")[1]
    assert (moved["before"]["run_id"], moved["baseline"]["run_id"]) == (a.run_id, b.run_id)
    history = told(capsys, "show", "main")[1]["history"]
    assert [m["run_id"] for m in history] == [b.run_id, a.run_id] and history[1]["why"] == "release 1"
    assert [m["name"] for m in told(capsys)[1]["baselines"]] == ["main"]
    assert "Before it led to" not in out(capsys, "baseline", "accept", "main", "b")[1]
    assert told(capsys, "remove", "main")[1]["removed"]["run_id"] == b.run_id
    assert told(capsys, "show", "main")[1]["baseline"] is None and told(capsys)[1]["baselines"] == []


def test_a_baseline_whose_run_is_gone_says_so_and_leads_nowhere_else(place, two, capsys):
    run_id = two[0].run_id
    told(capsys, "set", "main", "a")
    changes.bin_many(place, [run_id])
    code, _, error = out(capsys, "compare", "baseline:main", "b")
    assert code == 2 and "is in the bin, until" in error and f"chipledger restore {run_id[:12]}" in error
    assert told(capsys)[1]["baselines"][0]["state"] == "in the bin"
    changes.restore(place, [run_id])
    assert find_run(place, "baseline:main").run_id == run_id
    changes.bin_many(place, [run_id], now=True)
    assert "no longer in the store" in out(capsys, "compare", "baseline:main", "b")[2]
    assert told(capsys, "show", "main")[1]["history"][0]["run_name"] == "a"


def test_a_run_called_like_the_id_of_one_that_is_gone_is_not_taken_for_it(place, two, capsys):
    from app.baselines import set_baseline, shown

    run_id = two[0].run_id
    set_baseline(place, "main", "a")
    changes.bin_many(place, [run_id])
    for name in (run_id, f"{run_id}-copy"):
        changes.rename(place, two[1].run_id, name)
        assert "is in the bin, until" in out(capsys, "compare", "baseline:main", two[1].run_id)[2]
    changes.bin_many(place, [run_id], now=True)
    for name in (run_id, f"{run_id}-copy"):
        changes.rename(place, two[1].run_id, name)
        with pytest.raises(QuestionError, match="no longer in the store"):
            find_run(place, "baseline:main")
        assert shown(place, "main")[0].state == "no longer in the store"


@pytest.mark.parametrize("asked", ["e\u0301te\u0301 1", "\u00e9t\u00e9  1", " \u00e9t\u00e9 1 "])
def test_a_name_is_found_however_its_characters_are_written(place, two, asked):
    from app.baselines import remove, set_baseline, shown

    set_baseline(place, asked, "a")
    assert find_run(place, f"baseline:{asked}").run_id == shown(place, asked)[0].move.run_id == two[0].run_id
    with pytest.raises(QuestionError, match="A baseline is called so: baseline:\u00e9t\u00e9 1"):
        find_run(place, asked)
    remove(place, asked)


def test_a_name_that_is_no_text_is_nobodys(place, two, capsys):
    for wrong in ("baseline:\udcff", "\udcff"):
        code, _, error = out(capsys, "compare", wrong, "b")
        assert code == 2 and error.count("\n") == 1 and "udcff" in error
    assert out(capsys, "baseline", "show", "\udcff")[0] == 2


def test_a_run_that_is_called_like_a_baseline_is_never_shadowed(place, two):
    old = job(place.store, "baseline:main", seed=3)  # of a time before there were baselines
    assert find_run(place, "baseline:main").run_id == old.run_id
    assert find_run(place, old.run_id).run_id == old.run_id
    from app.baselines import set_baseline

    set_baseline(place, "main", "a")
    with pytest.raises(QuestionError, match=f"{two[0].run_id[:12]} for the baseline's run, or {old.run_id[:12]}"):
        find_run(place, "baseline:main")
    with pytest.raises(QuestionError, match="A baseline is called so: baseline:main"):
        find_run(place, "main")
    with pytest.raises(Exception, match="begins with baseline:"):
        changes.rename(place, "a", "baseline:other")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("set",), "`baseline set` is given nothing; expected chipledger baseline set NAME RUN"),
        (("set", "main"), "is given NAME; expected chipledger baseline set NAME RUN"),
        (("list", "main"), "is given NAME; expected chipledger baseline list"),
        (("remove", "main", "a"), "is given NAME RUN; expected chipledger baseline remove NAME"),
        (("shwo", "main"), "Did you mean 'show'?"),
        (("show", "mian"), "no baseline 'mian'"),
        (("set", "main", "nobody"), "no run 'nobody'"),
        (("set", "x" * 10_000, "a"), "1 to 100"),
        (("set", "main", "a", "--why", "\x07"), "invisible character"),
    ],
)
def test_what_cannot_be_asked_is_one_line(two, capsys, given, said):
    code, _, error = out(capsys, "baseline", *given)
    assert code == 2 and said in error and error.count("\n") == 1


def test_the_api_and_agents_name_runs_too(place, two):
    with serving(place.store.root) as address:
        one = f"{address}/api/baselines/team%2Fmain"
        assert request("PUT", one, {"run": "a", "who": "ann"})[1]["baseline"]["name"] == "team/main"
        assert request("PUT", one, {"run": "b"})[0] == 400
        code, moved = request("PATCH", one, {"run": "b", "why": "quicker"})
        assert code == 200 and moved["before"]["run_id"] == two[0].run_id
        assert [m["who"] for m in get(one)[1]["history"]] == ["", "ann"]
        assert get(f"{address}/api/compare?a=a&b=baseline:team/main")[1]["b"] == two[1].run_id
        assert get(f"{address}/api/compare?a=a&b=baseline:none")[0] == 404
        assert get(f"{address}/api/baselines/none")[0] == request("DELETE", f"{address}/api/baselines/none")[0] == 404
        for wrong in ({}, {"run": 1}, {"run": "a", "x": 1}, {"run": "nobody"}):
            assert request("PUT", f"{address}/api/baselines/other", wrong)[0] == 400
        assert len(get(f"{address}/api/baselines")[1]["baselines"]) == 1
        listed = json.loads(call(tool("runs"), {"baseline": "*"}, place))["answer"]["baselines"]
        assert [b["address"] for b in listed] == ["baseline:team/main"]
        past = json.loads(call(tool("runs"), {"baseline": "team/main"}, place))["answer"]["history"]
        assert [m["run_id"] for m in past] == [two[1].run_id, two[0].run_id]
        assert json.loads(call(tool("compare"), {"a": "a", "b": "baseline:team/main"}, place))["answer"]["told"]
        assert request("DELETE", one)[0] == 200 and get(one)[1]["baseline"] is None


def test_the_page_finds_the_other_run_by_its_baseline(place, two):
    from app.baselines import set_baseline

    set_baseline(place, "main", "b")
    at = opened(PAGE, run=two[0].run_id, **{"with": "baseline:main"})
    assert not at.exception and "slower a step" in words(at)
