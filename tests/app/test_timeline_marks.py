"""Bookmarks and comments on a timeline: kept where they were made, as text, and gone with their run."""

import json
import urllib.error
import urllib.request

import pytest

from analyzers.timeline import timeline
from app.timeline import marks
from app.workspace import Workspace
from errors import ChipledgerError
from runs.registry import Registry
from runs.store import Store
from runs.timeline_book import MOST, MOST_TEXT, TimelineBook
from tests.app import made_runs
from tests.app.serving import get, serving

S = 10**12
HOSTILE = "<img src=x onerror=alert(1)> & \u202e \U0001f600 ünï"
ONE = {"at": 5 * S, "from": 2 * S, "to": 9 * S, "rows": "0", "text": HOSTILE}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    store = Store(folder)
    run = made_runs.interrupted(store)
    with serving(folder) as address:
        yield f"{address}/api/runs/{run.run_id}", folder


def sent(method: str, url: str, body=None) -> tuple[int, dict]:
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)


def test_a_mark_is_kept_told_and_deleted(served):
    begin = f"{served[0]}/timeline/marks"
    assert get(begin)[1] == {"marks": []}
    code, told = sent("POST", begin, ONE)
    [mark] = told["marks"]
    assert code == 200 and mark["id"] == told["id"]
    assert {n: mark[n] for n in ("at", "from", "to", "rows", "text", "clocks", "who")} == {
        **ONE, "rows": [0], "clocks": "recorded", "who": "",
    }  # fmt: skip
    later = sent("POST", begin, ONE | {"at": str(7 * S), "text": "", "rows": "", "who": " ann "})[1]
    assert [(m["at"], m["text"], m["who"], m["rows"]) for m in later["marks"]] == [
        (5 * S, HOSTILE, "", [0]),
        (7 * S, "", "ann", []),
    ]
    assert sent("DELETE", f"{begin}/{mark['id']}")[1]["marks"] == later["marks"][1:]
    assert sent("DELETE", f"{begin}/{mark['id']}")[0] == 404
    assert sent("DELETE", f"{begin}/{later['id']}")[1] == {"marks": []}


@pytest.mark.parametrize(
    "wrong",
    [
        {"at": None}, {"at": 1.5}, {"at": True}, {"at": "1e308"}, {"at": "nan"}, {"at": 1 << 70}, {"at": "9" * 10_000},
        {"to": 2 * S}, {"to": -(1 << 61)}, {"rows": "0-99999999999"}, {"rows": "x"}, {"rows": ["0"]}, {"clocks": "his"},
        {"text": "x" * (MOST_TEXT + 1)}, {"text": "a\0b"}, {"text": ["x"]}, {"more": "1"}, {"who": "\u202ebob"},
    ],
)  # fmt: skip
def test_what_is_no_mark_is_refused_in_a_sentence_and_nothing_is_kept(served, wrong):
    begin = f"{served[0]}/timeline/marks"
    code, told = sent("POST", begin, ONE | wrong)
    assert code == 400 and len(told["error"]) < 500 and "defect" not in told["error"]
    assert get(begin)[1] == {"marks": []}
    for number in ("x", "-1", "9" * 30, "1.0", "%E0%B9%91"):
        assert sent("DELETE", f"{begin}/{number}")[0] == 404


@pytest.fixture
def place(tmp_path):
    store = Store(tmp_path)
    return Workspace(store, Registry(store.root / "registry.db"))


def test_a_mark_stays_at_its_time_and_lane_where_a_timeline_is_made_anew(place):
    run = made_runs.interrupted(place.store)
    of = timeline(run.tables, run.manifest.facts)
    row = of.tiles.rows - 1
    marks.keep(place, run, of, ONE | {"rows": str(row)})
    columns = {name: run.tables.arrow(name).to_pydict() for name in ("steps", "lifecycle")}
    columns["lifecycle"]["start_ns"].append(made_runs.START_NS - 60 * made_runs.S)
    columns["lifecycle"]["end_ns"].append(made_runs.START_NS - 50 * made_runs.S)
    for name, values in columns["lifecycle"].items():
        if name not in ("start_ns", "end_ns"):
            values.append("custom" if name == "kind" else "another" if name == "host" else values[0])
    grown = made_runs.write(place.store, "grown", columns, {})
    other = timeline(grown.tables, grown.manifest.facts)
    assert other.origin_ns < of.origin_ns and len(other.lanes) > len(of.lanes)
    place.registry.stand_for(grown.run_id, run.run_id)  # as snapshots of a live run do
    [mark] = marks.kept(place, grown, other)
    gone_by = (of.origin_ns - other.origin_ns) * 1000 // other.tick_ps
    assert (mark["at"], mark["from"], mark["to"]) == tuple(ONE[n] + gone_by for n in ("at", "from", "to"))
    lane = next(one for one in of.lanes if one.first_row <= row < one.first_row + one.rows).lane
    now = next(one for one in other.lanes if one.first_row <= mark["rows"][0] < one.first_row + one.rows).lane
    assert now == lane
    other_lanes = made_runs.write(place.store, "requests", {"lifecycle": columns["lifecycle"]}, {})
    place.registry.stand_for(other_lanes.run_id, run.run_id)
    few = timeline(other_lanes.tables, {})
    assert all(0 <= row < few.tiles.rows for row in marks.kept(place, other_lanes, few)[0]["rows"])


def test_marks_go_with_their_run_and_are_bounded(place):
    from app.library import changes

    run, other = made_runs.interrupted(place.store), made_runs.interrupted(place.store, "another")
    book = TimelineBook(place.registry.path)
    for _ in range(MOST):
        book.add(run.run_id, "x", "{}")
    with pytest.raises(ChipledgerError, match="are kept on this timeline already"):
        book.add(run.run_id, "x", "{}")
    number = book.add(other.run_id, "y", "{}")
    with pytest.raises(ChipledgerError, match="has no mark"):
        book.delete(run.run_id, number)
    changes.bin_many(place, [run.run_id], now=True)
    assert book.marks(run.run_id) == [] and [mark.text for mark in book.marks(other.run_id)] == ["y"]
