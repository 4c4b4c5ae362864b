"""The timeline over HTTP: lanes, the marks of a window as bytes, one event, a search, and what is refused."""

import gzip
import json
import re
import struct
import urllib.error
import urllib.request

import numpy as np
import pytest

from analyzers.timeline import timeline
from app.cli import main
from app.serve.timeline import MOST_ROWS, rows_of
from errors import QuestionError
from runs.store import Store
from tests.app import made_runs
from tests.app.serving import get, serving
from tests.bundled import RUNS


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    assert main(["--store", str(folder), "ingest", str(RUNS / "pytorch")]) == 0
    store = Store(folder)
    run = store.runs()[0]
    empty = made_runs.write(store, "nothing", {}, {})
    with serving(folder) as address:
        yield address, run, empty


def asked(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=60) as answer:
        assert answer.headers["Content-Type"] == "application/octet-stream"
        return answer.read()


def read(body: bytes) -> tuple[dict, dict[str, np.ndarray]]:
    """As the browser reads it."""
    [length] = struct.unpack_from("<I", body)
    head, at, columns = json.loads(body[4 : 4 + length]), 4 + length, {}
    for name, kind in (
        *((n, "<i4") for n in ("begin", "width", "event", "name")),
        ("count", "<u4"),
        ("dur", "<f4"),
        ("row", "<u2"),
        ("code", "u1"),
        ("share", "u1"),
    ):
        marks, wide = head["marks"], np.dtype(kind).itemsize
        planes = np.frombuffer(body, np.uint8, marks * wide, at).reshape(wide, marks)
        column = np.frombuffer(planes.T.tobytes(), kind)
        columns[name] = np.cumsum(column, dtype=kind) if name in ("begin", "event", "row") else column
        at += marks * wide
    assert at == len(body)
    return head, columns


def test_all_rows_of_the_whole_run_hold_every_event(served):
    address, run, _ = served
    of = timeline(run.tables, run.manifest.facts)
    told = get(f"{address}/api/runs/{run.run_id}/timeline")[1]
    assert told["events"] == of.events and told["span_ticks"] == of.span
    assert sum(lane["rows"] for lane in told["lanes"]) == of.tiles.rows
    body = asked(f"{address}/api/runs/{run.run_id}/timeline/tiles?pixels=1000&rows=0-{of.tiles.rows - 1}")
    head, marks = read(body)
    assert int(marks["count"].sum()) == of.events
    assert len(body) < 2_000_000 and head["shift"] is not None
    assert {str(c) for c in np.unique(marks["code"])} <= set(told["codes"])
    assert marks["name"].max() < len(told["names"])
    assert (marks["dur"] == of.tiles.dur[marks["event"]].astype("f4")).all()  # of bins too: of their longest


def test_marks_come_compressed_to_who_takes_them_so(served):
    address, run, _ = served
    asking = f"{address}/api/runs/{run.run_id}/timeline/tiles?pixels=1000&rows=0-9"
    request = urllib.request.Request(asking, headers={"Accept-Encoding": "br, gzip"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.headers["Content-Encoding"] == "gzip" and answer.headers["Vary"] == "Accept-Encoding"
        body = answer.read()
    assert gzip.decompress(body) == asked(asking) and len(body) < len(asked(asking)) / 3


def test_a_narrow_window_shows_events_as_they_are(served):
    address, run, _ = served
    of = timeline(run.tables, run.manifest.facts)
    row = max((lane for lane in of.lanes if lane.lane.role == "compute"), key=lambda lane: lane.events).first_row
    at = int(of.tiles.start[of.tiles.first[row] + 100])
    head, marks = read(
        asked(f"{address}/api/runs/{run.run_id}/timeline/tiles?start={at}&end={at + 50_000_000}&rows={row}")
    )
    assert head["shift"] is None and (marks["count"] == 1).all()
    begin = head["start_tick"] + marks["begin"].astype(np.int64) * head["unit_ticks"]
    assert (np.abs(begin - of.tiles.start[marks["event"]]) < head["unit_ticks"]).all()
    number = int(marks["event"][0])
    one = get(f"{address}/api/runs/{run.run_id}/timeline/event?event={number}")[1]
    assert one["start_tick"] == int(of.tiles.start[number]) and one["dur_ticks"] == int(of.tiles.dur[number])
    assert one["name"] == told_name(of, number) and one["count"] >= 1 and one["row"] == row


def told_name(of, number: int) -> str:
    return of.names[of.name[number]]


def test_a_search_counts_all_and_tells_the_first_in_order_of_time(served):
    address, run, _ = served
    of = timeline(run.tables, run.manifest.facts)
    found = get(f"{address}/api/runs/{run.run_id}/timeline/search?q=ALLREDUCE")[1]
    names = [i for i, name in enumerate(of.names) if "allreduce" in name.casefold()]
    assert found["hits"] == int(np.isin(of.name, names).sum()) > 0
    starts = [start for _, start, _ in found["events"]]
    assert starts == sorted(starts) and set(found["names"]) <= {of.names[i] for i in names}


def test_an_answer_for_ever_says_so_and_others_do_not(served):
    address, run, _ = served
    tiles = f"{address}/api/runs/{run.run_id}/timeline/tiles?rows=0"
    for more, kept in (("", "no-cache"), ("&written=1", "private, max-age=31536000, immutable")):
        with urllib.request.urlopen(tiles + more, timeout=60) as answer:
            assert answer.headers["Cache-Control"] == kept


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("tiles?rows=0&start=5&end=5", "an end after the start"),
        ("tiles?rows=0&start=x", "start"),
        ("tiles?rows=99999999999999999999", "rows from 0 to"),
        ("tiles?rows=-1", "rows such as"),
        ("tiles?rows=", "rows such as"),
        ("tiles?rows=0&pixels=0", "pixels"),
        ("tiles?rows=0&pixel=5", "pixel"),
        ("tiles?rows=0&start=99999999999999999999999", "start"),
        ("event?event=999999999", "a number below"),
        ("event?event=-1", "event"),
        ("search?q=", "with part of a name"),
        ("search", "with part of a name"),
        ("tiles?rows=0&colours=rainbow", "one of accounts, categories"),
        ("tiles?rows=0&colours=accounts&colours=accounts", "given twice"),
        ("perfetto?most=0", "most=0"),
        ("perfetto?most=x", "most='x'"),
        ("perfetto?start=nan", "start='nan'"),
    ],
)
def test_what_cannot_be_shown_is_one_sentence(served, path, said):
    address, run, _ = served
    with pytest.raises(urllib.error.HTTPError, match="400") as refused:
        urllib.request.urlopen(f"{address}/api/runs/{run.run_id}/timeline/{path}", timeout=60)
    error = json.loads(refused.value.read())["error"]
    assert said in error and "\n" not in error


def test_a_run_without_times_is_one_sentence_at_every_address(served):
    address, _, empty = served
    for path in ("", "/tiles?rows=0", "/event?event=0", "/search?q=a"):
        status, told = get(f"{address}/api/runs/{empty.run_id}/timeline{path}")
        assert status == 400 and "nothing of this run has a place in time" in told["error"]
    assert get(f"{address}/api/runs/none/timeline")[0] == 404


def test_rows_are_spelled_as_ranges_and_bounded():
    assert rows_of("0-3,7,9-9", 10) == [0, 1, 2, 3, 7, 9]
    with pytest.raises(QuestionError, match=f"at most {MOST_ROWS}"):
        rows_of("0-500", 1_000)
    for wrong in ("3-1", "a", "1-", "1--2", "٣", "0-9,10"):
        with pytest.raises(QuestionError, match="rows"):
            rows_of(wrong, 10)


def test_by_categories_marks_are_those_of_accounts_in_other_colours(served):
    address, run, _ = served
    told = get(f"{address}/api/runs/{run.run_id}/timeline")[1]
    of = timeline(run.tables, run.manifest.facts)
    asking = f"{address}/api/runs/{run.run_id}/timeline/tiles?pixels=300&rows=0-{of.tiles.rows - 1}"
    (_, plain), (_, kinds) = (read(asked(asking + more)) for more in ("", "&colours=categories"))
    assert all((plain[name] == kinds[name]).all() for name in plain if name != "code")
    assert {str(c) for c in np.unique(kinds["code"])} <= set(told["kinds"])
    assert {told["kinds"][str(c)]["name"] for c in np.unique(kinds["code"])} >= {"matmul", "host", "all-reduce"}
    assert all(re.fullmatch("#[0-9A-F]{6}", k["colour"]) and k["title"] for k in told["kinds"].values())


def test_a_window_that_asks_for_everything_is_small_and_whole(served):
    address, run, _ = served
    of = timeline(run.tables, run.manifest.facts)
    far, rows = 1 << 62, of.tiles.rows
    everything = f"start={-far}&end={far}&pixels=20000&rows=0-{rows - 1}"
    body = asked(f"{address}/api/runs/{run.run_id}/timeline/tiles?{everything}")
    _, marks = read(body)
    assert int(marks["count"].sum()) == of.events and len(body) < 2_000_000


def test_a_run_that_is_deleted_while_it_is_looked_at_is_one_sentence(served):
    address, run, _ = served
    store = Store(run.folder.parent.parent)
    gone = made_runs.interrupted(store, "gone")
    begin = f"{address}/api/runs/{gone.run_id}/timeline"
    assert get(begin)[0] == 200
    with urllib.request.urlopen(f"{begin}/tiles?rows=0", timeout=60) as answer:
        assert answer.status == 200
    delete = urllib.request.Request(f"{address}/api/runs/{gone.run_id}", method="DELETE")
    with urllib.request.urlopen(delete, timeout=60) as answer:
        assert answer.status == 200
    for path in ("", "/tiles?rows=0", "/event?event=0", "/search?q=step", "/selection", "/arrows?event=0", "/marks"):
        status, told = get(begin + path)
        assert status == 404 and told["error"] and "\n" not in told["error"]
