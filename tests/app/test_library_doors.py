"""Keeping runs in order through each door: what a command does, a request does, and agents are told of it."""

import json
from urllib.parse import quote

import pytest

from app.mcp.calling import call
from app.mcp.tools import tool
from app.workspace import STORE_VARIABLE, workspace
from errors import ChipledgerError
from runs.registry import MAX_TEXT
from runs.store import Store
from tests.app import made_runs
from tests.app.commands import out
from tests.app.serving import get, request, serving

R = "RUN"  # stands for the run's id: one that the commands change, another that the requests do


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def ids(store):
    """(the run of the commands, the run of the requests)."""
    return [made_runs.interrupted(Store(store), name).run_id for name in ("by command", "by request")]


@pytest.fixture(scope="module")
def server(store, ids):
    with serving(store) as address:
        yield address


@pytest.fixture(autouse=True)
def here(store, monkeypatch):
    monkeypatch.setenv(STORE_VARIABLE, str(store))


def kept(server, run):
    """All that people said of a run, as the API tells it."""
    told = get(f"{server}/api/runs/{run}")[1]
    tags = {k: v for k, v in told["tags"].items() if k.startswith("my-")}
    notes = [n["text"] for n in get(f"{server}/api/runs/{run}/notes")[1]["notes"]]
    facts = {f["name"]: f["value"] for f in get(f"{server}/api/runs/{run}/facts")[1]["facts"] if f["who"]}
    labels = {name: told[name] for name in ("starred", "archived", "project", "experiment")}
    return {"name": told["name"], "tags": tags, "notes": notes, "facts": facts, **labels}


PATCH, ONE = "PATCH", f"/api/runs/{R}"
TAGS, BY_NONE = {"my-a": "1", "my-b": "=2"}, {"query": "a", "sort": "nope"}
ACTS = [  # in their order: words of a command, the request that does the same, and what is another thereby
    (["rename", R, "night  run"], (PATCH, ONE, {"name": "night  run"}), {"name": "night run"}),
    (["star", R], (PATCH, ONE, {"starred": True}), {"starred": True}),
    (["star", R, "--off"], (PATCH, "/api/runs", {"runs": [R], "starred": False}), {"starred": False}),
    (["group", R, "p/e"], (PATCH, ONE, {"group": "p/e"}), {"project": "p", "experiment": "e"}),
    (["group", R, ""], (PATCH, ONE, {"group": None}), {"project": None, "experiment": None}),
    (["tag", R, "my-a=1", "my-b==2"], (PATCH, ONE, {"tags": TAGS}), {"tags": TAGS}),
    (["tag", R, "--remove", "my-a"], (PATCH, ONE, {"tags": {"my-a": None}}), {"tags": {"my-b": "=2"}}),
    (["note", R, "# <b>hung</b>"], ("POST", f"{ONE}/notes", {"text": "# <b>hung</b>"}), {"notes": ["# <b>hung</b>"]}),
    (["facts", R, "chips=512"], (PATCH, f"{ONE}/facts", {"chips": 512, "who": "ann"}), {"facts": {"chips": 512}}),
    (["facts", R, "chips="], (PATCH, f"{ONE}/facts", {"chips": None, "who": "ann"}), {"facts": {}}),
    (["archive", R], (PATCH, ONE, {"archived": True}), {"archived": True}),
    (["archive", R, "--off"], (PATCH, ONE, {"archived": False}), {"archived": False}),
    (["delete", R], ("DELETE", ONE, None), None),
    (["restore", R], ("POST", f"{ONE}/restore", {}), {}),
    (["rename", R, ""], (PATCH, ONE, {"name": ""}), {"name": None}),
]  # fmt: skip


def of(run, given):
    """With the run's id where it is meant."""
    return json.loads(json.dumps(given).replace(R, run))


def test_what_a_command_does_a_request_does(server, ids, capsys):
    before = {}
    for n, (words, asked, changed) in [(n, act) for n in (0, 1) for act in ACTS]:
        run, stored = ids[n], ("by command", "by request")[n]
        before = before if words[0] == "restore" else kept(server, run)
        if n == 0:
            code, told, error = out(capsys, *of(run, words), "--json")
            assert (code, error) == (0, "") and "error" not in json.loads(told), words
        else:
            method, path, body = of(run, asked)
            status, told = request(method, server + path, body)
            assert status == 200, (asked, told)
        if changed is None:
            assert get(f"{server}/api/runs/{run}")[0] == 404
            assert [b["run_id"] for b in get(f"{server}/api/bin")[1]["bin"]] == [run]
        else:
            change = {"name": stored} if changed == {"name": None} else changed
            assert kept(server, run) == before | change, words
        if changed is None or words[0] == "restore":
            continue
        listed = {r["run_id"]: r for r in get(f"{server}/api/runs?archived=true")[1]["runs"]}
        assert listed[run]["name"] == kept(server, run)["name"]


def test_searches_are_kept_and_asked_by_each_door(server, ids, capsys):
    for words in (["mine", "--query", "is:starred", "--columns", "name,mfu", "--sort=-mfu"], ["mine"]):
        code, told, _ = out(capsys, "searches", *words, "--json")
        assert code == 0
    [by_command] = json.loads(told)["searches"]
    asked = {"query": "is:starred", "columns": ["name", "mfu"], "sort": "-mfu"}
    assert request("PUT", f"{server}/api/searches/yours", asked)[0] == 200
    found = {s["name"]: s for s in get(f"{server}/api/searches")[1]["searches"]}
    assert [found["mine"][k] for k in asked] == [found["yours"][k] for k in asked] == list(asked.values())
    assert by_command["name"] == "mine"
    code, told, _ = out(capsys, "runs", "--saved", "yours", "--json")
    assert code == 0 and json.loads(told)["runs"] == []
    assert out(capsys, "searches", "yours", "--delete", "--json")[0] == 0
    assert request("DELETE", f"{server}/api/searches/mine")[1] == {"deleted": "mine"}
    assert get(f"{server}/api/searches")[1]["searches"] == []


def test_the_list_is_the_same_at_each_door(server, ids, capsys):
    get(f"{server}/api/runs?sort=mfu")
    for query, more in (("", []), ("llama", ["--sort=name"]), ("chips>1", ["--sort=-chips", "--limit=1"])):
        sort = "".join(f"&{word.removeprefix('--')}" for word in more)
        code, told, _ = out(capsys, "runs", query, *more, "--json")
        listed = get(f"{server}/api/runs?q={quote(query)}{sort}")[1]
        assert code == 0 and [r["run_id"] for r in json.loads(told)["runs"]] == [r["run_id"] for r in listed["runs"]]
    code, told, _ = out(capsys, "runs", "--columns", "name,mfu,goodput,star,tags", "--sort", "-goodput")
    assert code == 0 and told.splitlines()[0].split() == ["run", "name", "mfu", "goodput", "star", "tags"]
    assert len(told.splitlines()) == 3


def test_a_list_in_order_of_a_number_is_in_its_order_however_fresh_its_runs(place, capsys):
    for name, steps in (("middle", 150), ("long", 400), ("short", 40)):
        tables = {"steps": made_runs.step_columns([10**9] * steps)}
        made_runs.write(place.store, name, tables, {"chips": 4, "usd_per_chip_hour": 3.0})
    code, told, _ = out(capsys, "runs", "--sort=-cost", "--limit=1")
    assert code == 0 and told.splitlines()[1].split()[1] == "long"
    told = json.loads(out(capsys, "runs", "--sort=step_time", "--limit=1", "--json")[1])
    assert told["pending"] == 0


HIDDEN = "a\u202eb"
REFUSED = [  # words of a command, the same request, and what both say
    (["rename", R, HIDDEN], (PATCH, ONE, {"name": HIDDEN}), "invisible character U+202E"),
    (["rename", R, "x" * 10_000], (PATCH, ONE, {"name": "x" * 10_000}), "a name of 10,000 characters"),
    (["rename", R, "live:x"], (PATCH, ONE, {"name": "live:x"}), "a name that begins with live:"),
    (["rename", "nobody", "x"], (PATCH, "/api/runs/nobody", {"name": "x"}), "no run 'nobody'"),
    (["star", "nobody"], (PATCH, "/api/runs", {"runs": ["nobody"], "starred": True}), "no run 'nobody'"),
    (["star", R, "nobody"], (PATCH, "/api/runs", {"runs": [R, "nobody"], "starred": True}), "no run 'nobody'"),
    (["archive", "nobody"], (PATCH, "/api/runs/nobody", {"archived": True}), "no run 'nobody'"),
    (["group", R, "a/b/c"], (PATCH, ONE, {"group": "a/b/c"}), "more than two levels"),
    (["group", R, "/b"], (PATCH, ONE, {"group": "/b"}), "lacks a level"),
    (["tag", R, f"{HIDDEN}=1"], (PATCH, ONE, {"tags": {HIDDEN: "1"}}), "invisible character U+202E"),
    (["tag", R, "a=" + "y" * 10_001], (PATCH, ONE, {"tags": {"a": "y" * 10_001}}), "10,001 characters"),
    (["note", R, " "], ("POST", f"{ONE}/notes", {"text": " "}), "a note of 0 characters"),
    (["note", R, "--delete", "999"], ("DELETE", f"{ONE}/notes/999", None), "no note 999"),
    (["note", R, "x", "--edit", "999"], (PATCH, f"{ONE}/notes/999", {"text": "x"}), "no note 999"),
    (["facts", R, "chips=1e999"], (PATCH, f"{ONE}/facts", {"chips": "1e999"}), "a whole number from 1"),
    (["facts", R, "model=<b>"], (PATCH, f"{ONE}/facts", {"model": "<b>"}), "no model is called '<b>'"),
    (["facts", R, "chpi=v5p"], (PATCH, f"{ONE}/facts", {"chpi": "v5p"}), "Did you mean 'chip'?"),
    (["delete", "nobody"], ("DELETE", "/api/runs/nobody", None), "no run 'nobody'"),
    (["restore", R], ("POST", f"{ONE}/restore", {}), "in the bin"),
    (["searches", "s", "--query", "chipp:x"], ("PUT", "/api/searches/s", {"query": "chipp:x"}), "no field 'chipp'"),
    (["searches", "s", "--query", "a", "--sort", "nope"], ("PUT", "/api/searches/s", BY_NONE), "no column 'nope'"),
    (["searches", "s", "--delete"], ("DELETE", "/api/searches/s", None), "no search 's'"),
    (["runs", "mfu<<3"], ("GET", f"/api/runs?q={quote('mfu<<3')}", None), "in the search"),
    (["runs", "--sort", "nope"], ("GET", "/api/runs?sort=nope", None), "no column 'nope'"),
    (["runs", "--limit", "0"], ("GET", "/api/runs?limit=0", None), "a whole number from 1"),
]  # fmt: skip


def test_a_list_in_the_order_of_a_number_works_that_out_though_it_is_not_shown(tmp_path, capsys):
    """Of a store whose page nobody opened yet: the costliest is the costliest, not the newest."""

    def stored(*seconds: int) -> None:
        for took in seconds:
            steps = made_runs.step_columns([took * 10**9] * 30)
            made_runs.write(Store(tmp_path), f"{took} s", {"steps": steps}, {"chips": 8})

    stored(4, 9, 2)
    code, told, _ = out(capsys, "runs", "--sort=-chip_hours", "--store", tmp_path)
    assert not code and [line.split()[1] for line in told.splitlines()[1:]] == ["9", "4", "2"]
    stored(30, 1)
    listed = json.loads(out(capsys, "runs", "--sort=-chip_hours", "--limit=1", "--json", "--store", tmp_path)[1])
    assert [run["name"] for run in listed["runs"]] == ["30 s"] and listed["pending"] == 0


@pytest.mark.parametrize(("words", "asked", "why"), REFUSED, ids=[f"{w[0]}-{n}" for n, (w, *_) in enumerate(REFUSED)])
def test_what_cannot_be_is_refused_in_one_sentence_and_changes_nothing(server, ids, capsys, words, asked, why):
    before = [kept(server, run) for run in ids], get(f"{server}/api/searches")[1]
    code, told, error = out(capsys, *of(ids[0], words), "--json")
    assert code == 2 and error.startswith("error: ") and error.count("\n") == 1 and why in error
    assert set(json.loads(told)["error"]) == {"what", "where", "expected", "advice"}
    method, path, body = of(ids[1], asked)
    status, told = request(method, server + path, body)
    assert status in (400, 404) and why in told["error"] and "\n" not in told["error"] and len(told["error"]) < 1000
    assert ([kept(server, run) for run in ids], get(f"{server}/api/searches")[1]) == before


def test_the_longest_note_arrives_also_where_each_character_is_escaped(server, ids):
    status, _ = request("POST", f"{server}/api/runs/{ids[1]}/notes", {"text": "\N{SNAIL}" * MAX_TEXT})
    assert status in (200, 201)
    assert "\N{SNAIL}" * MAX_TEXT in kept(server, ids[1])["notes"]


def test_agents_are_told_of_runs_that_were_renamed_archived_and_deleted(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(STORE_VARIABLE, str(tmp_path / "store"))
    place = workspace()
    one, two, three = (made_runs.interrupted(place.store, name).run_id for name in ("one", "two", "three"))
    for words in (["rename", one, "night <b>"], ["archive", two], ["delete", three]):
        assert out(capsys, *words)[0] == 0

    def told(name, given):
        return json.loads(call(tool(name), given, place))

    listed = told("runs", {})
    assert [(r["run_id"], r["name"]) for r in listed["answer"]["runs"]] == [(one, "night <b>")]
    assert "1 more archived" in listed["says"]
    found = told("runs", {"search": "is:archived"})
    assert [r["run_id"] for r in found["answer"]["runs"]] == [two] and "more archived" not in found["says"]
    assert told("facts", {"run": "one"})["answer"]["run_id"] == one, "by the name that it had"
    assert told("facts", {"run": "night <b>"})["answer"]["run_id"] == one
    with pytest.raises(ChipledgerError, match="is in the bin, until .*restore"):
        told("facts", {"run": "three"})
