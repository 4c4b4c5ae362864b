"""Stretches, arrows and steps of a timeline over HTTP, and the addresses by which pages lead to a place on it."""

import json
import urllib.error
import urllib.parse
import urllib.request
from types import SimpleNamespace

import numpy as np
import pytest

from analyzers.findings.base import Finding, Steps, Where
from analyzers.timeline import timeline
from analyzers.timeline.booked import ACCOUNT
from analyzers.timeline.lanes import NONE
from app.cli import main
from app.serve.timeline_places import SELECTED_ROWS
from app.timeline.events import one
from app.timeline.packing import titles
from app.timeline.perfetto.choosing import choose
from app.timeline.perfetto.options import LANES
from app.timeline.places import place_of, place_of_finding, place_of_step, resolved, shown_of
from errors import QuestionError
from runs.store import Store
from runs.tables import MemoryTables, frame
from tests.app import made_runs
from tests.app.serving import get, serving
from tests.bundled import RUNS

S = 1_000_000_000


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    assert main(["--store", str(folder), "ingest", str(RUNS / "pytorch")]) == 0
    store = Store(folder)
    run = store.runs()[0]
    job = made_runs.interrupted(store)
    with serving(folder) as address:
        yield address, run, job, timeline(run.tables, run.manifest.facts), timeline(job.tables, job.manifest.facts)


def asked(served, path: str, of_job: bool = False) -> dict:
    address, run, job, *_ = served
    return get(f"{address}/api/runs/{(job if of_job else run).run_id}/timeline/{path}")[1]


def test_a_selection_tells_accounts_by_size_and_the_lanes_that_were_chosen(served):
    of = served[3]
    whole = asked(served, "selection")
    assert whole["seconds"] == pytest.approx(of.span * of.tick_ps / 1e12)
    assert whole["events"] == of.events - of.strips == sum(lane["events"] for lane in whole["lanes"])
    assert sum(one["share"] for one in whole["accounts"]) == pytest.approx(1)
    seconds = [one["seconds"] for one in whole["accounts"]]
    assert seconds == sorted(seconds, reverse=True)
    lane = next(n for n, one in enumerate(of.lanes) if one.lane.role == "compute")
    row = of.lanes[lane].first_row
    some = asked(served, f"selection?start={of.span // 4}&end={of.span // 2}&rows={row}")
    assert [one["title"] for one in some["lanes"]] == [titles(of)[lane]]
    begin, ends = of.tiles.start, of.tiles.start + of.tiles.dur
    mine = np.arange(of.tiles.first[row], of.tiles.first[row + 1])
    inside = np.maximum(np.minimum(ends, of.span // 2) - np.maximum(begin, of.span // 4), 0)[mine]
    assert some["lanes"][0]["busy_s"] == pytest.approx(int(inside.sum()) * of.tick_ps / 1e12, rel=1e-12)
    assert set(some) == {"start", "end", "seconds", "events", "accounts", "lanes"}
    assert set(some["accounts"][0]) == {"account", "title", "colour", "seconds", "share"}


def test_arrows_name_events_with_their_rows_and_ticks(served):
    of, run = served[3], served[1]
    row = frame(run.tables, "collectives", ["capture", "start_ns"]).iloc[-1]
    tick = (int(row["start_ns"]) - of.origin_ns) * 1000
    near = (of.tiles.start >= tick) & (of.tiles.start < tick + 1000) & (of.capture == row["capture"])
    told = [one for n in np.flatnonzero(near) for one in asked(served, f"arrows?event={n}")["arrows"]]
    assert [one["kind"] for one in told] == ["collective"]
    for end in (told[0]["from"], told[0]["to"]):
        assert end["tick"] == int(of.tiles.start[end["event"]])
        assert of.tiles.first[end["row"]] <= end["event"] < of.tiles.first[end["row"] + 1]
    assert told[0]["from"]["row"] != told[0]["to"]["row"]
    strip = next(one for one in of.lanes if one.lane.role == ACCOUNT)
    none = int(of.tiles.first[strip.first_row])
    assert of.event[none] == NONE and asked(served, f"arrows?event={none}") == {"arrows": [], "more": 0}


def test_a_step_begins_and_ends_where_the_table_of_steps_says(served):
    job, of = served[2], served[4]
    rows = frame(job.tables, "steps", ["step", "start_ns", "attempt"])
    for number in (0, 42, 95, 200):
        told = asked(served, f"step?number={number}", of_job=True)
        start = int(rows[rows["step"] == number]["start_ns"].max())  # lost steps were taken again later
        assert told["start"] == (start - of.origin_ns) * 1000 // of.tick_ps
        assert told["end"] - told["start"] >= 20 * S * 1000 // of.tick_ps


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("selection?start=5&end=5", "an end after the start"),
        ("selection?start=x", "start"),
        ("selection?end=nan", "end"),
        ("selection?end=1e308", "end"),
        ("selection?rows=", "rows such as"),
        ("selection?rows=99999999999999999999", "rows from 0 to"),
        ("selection?start=1&start=2", "given twice"),
        ("selection?row=1", "row"),
        ("arrows?event=-1", "event"),
        ("arrows?event=inf", "event"),
        ("arrows?event=999999999", "a number below"),
        ("arrows?number=1", "number"),
        ("step", "?number="),
        ("step?number=", "number"),
        ("step?number=-3", "number"),
        ("step?number=1e308", "number"),
        ("step?number=999999", "the nearest"),
        (f"step?number={'9' * 10_000}", "number"),
    ],
)
def test_what_cannot_be_told_is_one_sentence(served, path, said):
    address, run, *_ = served
    with pytest.raises(urllib.error.HTTPError, match="400") as refused:
        urllib.request.urlopen(f"{address}/api/runs/{run.run_id}/timeline/{path}", timeout=60)
    error = json.loads(refused.value.read())["error"]
    assert said in error and "\n" not in error and len(error) < 400
    assert SELECTED_ROWS > 1_024


def window(of, tables, place: dict[str, str]) -> tuple[int, int]:
    """Where an address looks, in ns since 1970."""
    found = resolved(of, tables, place)
    start, end = int(found["from"]), int(found["to"])
    assert 0 <= start < end <= max(of.span, 1)
    return of.origin_ns + start * of.tick_ps // 1000, of.origin_ns + end * of.tick_ps // 1000


def test_a_place_in_time_is_shown_with_room_about_it(served):
    job, of = served[2], served[4]
    begin = made_runs.START_NS + 1000 * S
    start, end = window(of, job.tables, place_of(start_ns=begin, end_ns=begin + 60 * S))
    assert begin - 60 * S < start < begin and begin + 60 * S < end < begin + 120 * S
    start, end = window(of, job.tables, place_of(start_ns=begin, end_ns=begin))
    assert start <= begin <= end


def test_every_slow_step_leads_to_a_window_that_holds_it(served):
    job, of = served[2], served[4]
    rows = frame(job.tables, "steps", ["step", "start_ns"])
    for start_ns in rows["start_ns"].iloc[::37]:
        start, end = window(of, job.tables, place_of_step({"start_ns": start_ns, "dur_s": 20.0}))
        assert start <= start_ns and start_ns + 20 * S <= end


def test_a_step_of_a_rank_leads_to_its_lane(served):
    run, of = served[1], served[3]
    rows = frame(run.tables, "steps", ["step", "start_ns", "dur_ns", "capture", "host"]).dropna()
    row = rows.iloc[len(rows) // 2]
    place = place_of(step=row["step"], host=str(row["host"]))
    assert shown_of(run, place) == place
    start, end = window(of, run.tables, place)
    assert start <= row["start_ns"] + row["dur_ns"] and end >= row["start_ns"]
    at = int(resolved(of, run.tables, place)["at"])
    lane = next(
        one for one in of.lanes if of.tiles.first[one.first_row] <= at < of.tiles.first[one.first_row + one.rows]
    )
    assert lane.lane.host == row["host"] and lane.lane.role != ACCOUNT


def test_an_operation_leads_to_its_longest_execution(served):
    run, of = served[1], served[3]
    ops = frame(run.tables, "ops", ["op", "total_ns", "device"])
    name = str(ops.dropna(subset=["device"]).sort_values("total_ns")["op"].iloc[-1])
    found = resolved(of, run.tables, place_of(op=name))
    at = int(found["at"])
    same = np.flatnonzero(of.name == of.name[at])
    assert of.names[of.name[at]] == name and of.tiles.dur[at] == of.tiles.dur[same].max()
    assert int(found["from"]) <= of.tiles.start[at] and of.tiles.start[at] + of.tiles.dur[at] <= int(found["to"])


def finding(**where) -> Finding:
    since = where.pop("since_ns", None)
    return Finding(
        cause="slow_rank", title="t", gain=None, draws={}, question="steps", confidence=1.0, where=Where(**where),
        since_ns=since,
    )  # fmt: skip


def test_a_finding_leads_to_its_steps_its_operation_or_since_when_it_is_so():
    assert place_of_finding(finding(steps=Steps(4, 9))) == {"step": "4", "last_step": "9"}
    assert place_of_finding(finding(steps=Steps(4, 900, 50))) == {"step": "4"}
    assert place_of_finding(finding(steps=(7, 12), hosts=("a",))) == {"step": "7", "lane": "a"}
    assert place_of_finding(finding(operations=("fusion.1", "fusion.2"))) == {"q": "fusion.1"}
    assert place_of_finding(finding(since_ns=S)) == {"from_ns": str(S)}
    assert place_of_finding(finding(hosts=("a", "b"))) == {}


def test_what_is_not_known_is_no_place(served):
    import pandas as pd

    for nothing in (None, pd.NA, float("nan"), 0, -5):
        assert place_of(start_ns=nothing, end_ns=5) == {}
    assert place_of(step=pd.NA, host="a", device=0) == {} == place_of(op="n" * 10_000)
    job = served[2]
    assert shown_of(job, place_of(step=3)) == {"step": "3"} and not shown_of(job, place_of(step=3_000))
    assert not shown_of(job, place_of(op="fusion"))
    assert shown_of(job, place_of(step=3, host="nobody", device=1)) == {"step": "3"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"from_ns": "x"}, "from_ns"),
        ({"from_ns": "-5"}, "from_ns"),
        ({"from_ns": "1e308"}, "from_ns"),
        ({"from_ns": "5", "to_ns": "9"}, "nothing of this run lies at that time"),
        ({"from_ns": "5", "to_ns": "1"}, "before it begins"),
        ({"to_ns": "5"}, "from_ns= beside"),
        ({"step": "nan"}, "step"),
        ({"step": "99999"}, "the nearest"),
        ({"step": "9", "last_step": "3"}, "a last step after the first"),
        ({"last_step": "3"}, "step= beside"),
        ({"q": "no such event"}, "no event there bears the name"),
        ({"q": "n" * 10_000}, "10,000 characters"),
        ({"lane": "n" * 10_000}, "10,000 characters"),
        ({"step": "3", "lane": "<b>"}, "no lane"),
    ],
)
def test_an_address_of_no_place_is_one_sentence(served, given, said):
    job, of = served[2], served[4]
    with pytest.raises(QuestionError) as refused:
        resolved(of, job.tables, given)
    assert said in str(refused.value) and len(str(refused.value)) < 400


def of_hosts(*hosts: str) -> MemoryTables:
    """One device and one thread of each host, an event on each."""
    count = len(hosts)
    both = [n for n in range(count) for _ in range(2)]
    ops = {"capture": both, "op_id": [0, 1] * count, "host": [hosts[n] for n in both], "device": [0, None] * count}
    ops |= {"line": ["XLA Ops", "python"] * count, "role": ["compute", "host"] * count, "op": ["dot", "call"] * count}
    events = {"capture": both, "event": [0, 1] * count, "device": [0, None] * count, "op_id": [0, 1] * count}
    events |= {"start_ps": [1000 * n for n in both], "dur_ps": [500] * 2 * count}
    captures = {"capture": [*range(count)], "host": [*hosts], "start_ns": [1_760_000_000 * S] * count}
    return MemoryTables({"captures": captures, "ops": ops | {"category": ["matmul"] * 2 * count}, "op_events": events})


@pytest.mark.parametrize("count", [1, 3])
def test_lanes_of_hosts_with_long_names_are_found_and_told_apart(count):
    hosts = [f"llama-pretrain-v6e-256-run-17-slice-job-{n}-0.trainer.team-ns.svc.cluster.local" for n in range(count)]
    tables = of_hosts(*hosts)
    of = timeline(tables, {})
    assert len(set(titles(of))) == len(of.lanes)
    for host in hosts:
        for lane, rows in ((f"{host}/0", ("XLA Ops",)), (host, ("XLA Ops", "python"))):
            found = resolved(of, tables, {"from_ns": str(of.origin_ns), "lane": lane, "q": "dot"})
            row = next(r for r in of.lanes if r.first_row == int(found["row"]))
            assert row.lane.host == host and row.lane.line in rows
            assert one(SimpleNamespace(tables=tables), of, int(found["at"]))["lane"] == f"{host}/0, operations"
        part = choose(of, {LANES.name: [host[20:48]]}).rows.tolist()  # which titles leave out
        assert part == [n for row in of.lanes if row.lane.host == host for n in range(row.first_row, row.first_row + 1)]
    with pytest.raises(QuestionError, match="no lane 'llama'"):
        resolved(of, tables, {"lane": "llama"})
