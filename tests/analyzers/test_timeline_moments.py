"""Where a step, a time and a name lie on a timeline, and which events belong to one elsewhere."""

import numpy as np
import pandas as pd
import pytest

from analyzers.ranks.meetings import meetings
from analyzers.timeline import timeline
from analyzers.timeline.arrows import COLLECTIVE, LAUNCH, MOST, arrows
from analyzers.timeline.lanes import NONE
from analyzers.timeline.moments import Stretch, between, longest_in, named, step
from errors import QuestionError
from runs.tables import MemoryTables, frame
from tests.analyzers.gpu_traces import MEETINGS, two_ranks
from tests.bundled import bundled

S = 1_000_000_000
T0 = 1_760_000_000 * S


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    run = bundled(tmp_path_factory, "pytorch")
    return run, timeline(run.tables, run.manifest.facts)


def stepped(**more):
    """Ten steps of 2 s, of which 5 to 9 were lost and taken again."""
    number = [*range(10), *range(5, 10)]
    start = [T0 + 2 * S * n for n in range(10)] + [T0 + 60 * S + 2 * S * n for n in range(5)]
    steps = {"step": number, "attempt": [0] * 10 + [1] * 5, "start_ns": start, "dur_ns": [2 * S] * 15} | more
    tables = MemoryTables({"steps": {**steps, "order": list(range(15))}})
    return tables, timeline(tables, {})


def test_a_step_is_where_the_job_kept_it():
    tables, of = stepped()
    for number, begin in ((3, 6), (5, 60), (9, 68)):
        found = step(of, tables, number)
        assert (found.start, found.end) == (begin * 10**12, (begin + 2) * 10**12)
        assert found.event is not None and of.number[found.event] == number
    several = step(of, tables, 2, 4)
    assert (several.start, several.end) == (4 * 10**12, 10 * 10**12)


def test_a_step_of_a_profile_is_where_its_table_says(profiled):
    run, of = profiled
    rows = frame(run.tables, "steps", ["step", "start_ns", "dur_ns", "capture"]).dropna()
    number = int(rows["step"].iloc[0])
    mine = rows[rows["step"] == number]
    found = step(of, run.tables, number)
    first = int(mine["start_ns"].min())
    assert found.start == (first - of.origin_ns) * 1000
    assert found.end <= (int((mine["start_ns"] + mine["dur_ns"]).max()) - of.origin_ns) * 1000
    assert found.end >= found.start + int(mine["dur_ns"].iloc[int(mine["start_ns"].argmin())]) * 1000


def test_a_run_without_a_time_of_day_begins_with_its_first_event_and_its_steps_stand_where_their_events_do():
    second, late = 10**12, 5 * S
    ops = {"capture": [0], "op_id": [0], "host": ["a"], "device": [0], "line": ["XLA Ops"], "role": ["compute"]}
    events = {"capture": [0] * 2, "event": [0, 1], "device": [0] * 2, "op_id": [0] * 2}
    tables = MemoryTables(
        {
            "captures": {"capture": [0], "host": ["a"], "start_ns": [None]},
            "steps": {"step": [3, 4], "capture": [0] * 2, "start_ns": [late, late + S], "dur_ns": [S, S]},
            "ops": {**ops, "op": ["dot.1"], "category": ["matmul"]},
            "op_events": {**events, "start_ps": [5 * second, 6 * second], "dur_ps": [second // 2] * 2},
        }
    )
    of = timeline(tables, {})
    assert not of.dated and (of.origin_ns, of.span) == (late, 3 * second // 2)
    assert [step(of, tables, n).start for n in (3, 4)] == of.tiles.start.tolist() == [0, second]
    with pytest.raises(QuestionError, match="a time from 5,000,000,000 to 6,500,000,000 ns"):
        between(of, 0, S)


@pytest.mark.parametrize("number", [10, 99, 1 << 61])
def test_a_step_that_is_not_there_is_refused_with_the_nearest(number):
    tables, of = stepped()
    with pytest.raises(QuestionError, match="from 0 to 9, such as 9, the nearest"):
        step(of, tables, number)


def test_times_become_ticks_and_those_of_no_part_of_the_run_are_refused():
    _, of = stepped()
    assert between(of, T0 + S, T0 + 3 * S) == Stretch(10**12, 3 * 10**12)
    assert between(of, T0 - S, T0 + S) == Stretch(0, 10**12)
    assert between(of, T0 + S, 1 << 62).end == of.span
    for start, end in ((0, 1), (T0 - 9, T0 - 1), (T0 + 100 * S, T0 + 101 * S)):
        with pytest.raises(QuestionError, match="nothing of this run lies at that time"):
            between(of, start, end)
    with pytest.raises(QuestionError, match="before it begins"):
        between(of, T0 + S, T0)


def test_a_name_leads_to_the_longest_event_that_bears_it(profiled):
    _, of = profiled
    codes = [n for n, name in enumerate(of.names) if "allreduce" in name.casefold()]
    mine = np.flatnonzero(np.isin(of.name, codes))
    found = named(of, "AllReduce", None, None)
    assert found is not None and found.event in mine and of.tiles.dur[found.event] == of.tiles.dur[mine].max()
    assert found.end - found.start == of.tiles.dur[found.event]
    half = Stretch(0, of.span // 2)
    inside = named(of, "AllReduce", half, None)
    assert (
        inside is not None
        and (inside.start, inside.end) == (0, of.span // 2)
        and of.tiles.start[inside.event] < of.span // 2
    )
    assert named(of, "no such name", None, None) is None


def test_the_longest_of_some_rows_is_by_the_time_inside_the_stretch(profiled):
    _, of = profiled
    lane = next(one for one in of.lanes if one.lane.role == "compute")
    rows = set(range(lane.first_row, lane.first_row + lane.rows))
    part = Stretch(of.span // 3, of.span // 3 + of.span // 50)
    found = longest_in(of, part, rows)
    ends, begins = of.tiles.start + of.tiles.dur, of.tiles.start
    inside = np.minimum(ends, part.end) - np.maximum(begins, part.start)
    mine = np.arange(of.tiles.first[lane.first_row], of.tiles.first[lane.first_row + lane.rows])
    assert inside[found] == inside[mine].max() and found in mine


@pytest.fixture(scope="module")
def gpus(tmp_path_factory):
    run = two_ranks(tmp_path_factory.mktemp("gpus"))
    return run, timeline(run.tables, run.manifest.facts)


def numbers(of, rows: pd.DataFrame, column: str) -> list[int]:
    """Where events of these rows of `launches` stand, one by one."""
    pairs = zip(rows["capture"], rows[column], strict=True)
    return [int(np.flatnonzero((of.capture == capture) & (of.event == event))[0]) for capture, event in pairs]


def lane_of(of, number: int):
    row = int(np.searchsorted(of.tiles.first, number, side="right")) - 1
    return next(one.lane for one in of.lanes if one.first_row <= row < one.first_row + one.rows)


def test_launches_lead_from_the_call_to_all_that_it_launched_whichever_is_asked(gpus):
    run, of = gpus
    rows = frame(run.tables, "launches", ["capture", "event", "call_event"])
    assert len(rows) == 2 * (1 + 3 + MEETINGS) and rows.notna().all(axis=None)
    pairs = list(zip(numbers(of, rows, "call_event"), numbers(of, rows, "event"), strict=True))
    for call, kernel in pairs:
        for asked in (call, kernel):
            found = [a for a in arrows(of, run.tables, None, asked).arrows if a.kind == LAUNCH]
            assert {(a.source, a.target) for a in found} == {pair for pair in pairs if asked in pair}
        assert of.names[of.name[call]].startswith("cuda") and lane_of(of, call).device is None
        assert lane_of(of, kernel).device == 0


def test_a_collective_leads_to_the_same_one_of_the_other_rank_though_clocks_differ(gpus):
    run, of = gpus
    met = meetings(run.tables)
    parts = [n for n in range(of.events) if "nccl" in of.names[of.name[n]].casefold()]
    assert len(parts) == 2 * MEETINGS
    by_host: dict[str, list[int]] = {}
    for n in sorted(parts, key=lambda n: int(of.tiles.start[n])):
        by_host.setdefault(lane_of(of, n).host, []).append(n)
    first, second = by_host.values()
    for here, there in zip(first, second, strict=True):  # the k-th of one rank meets the k-th of the other
        for asked, other in ((here, there), (there, here)):
            found = arrows(of, run.tables, met, asked)
            assert [(a.source, a.target) for a in found.arrows if a.kind == COLLECTIVE] == [(asked, other)]
            assert found.more == 0


def without_days(run) -> MemoryTables:
    """The same where captures tell no time of day, so that their times count from their beginnings; and an entry that
    has one."""
    held = {n: run.tables.arrow(n).to_pandas() for n in ("captures", "ops", "op_events", "launches", "collectives")}
    base = held["captures"].set_index("capture")["start_ns"]
    parts = held["collectives"]
    for name in ("start_ns", "end_ns"):
        parts[name] -= parts["capture"].map(base).to_numpy()
    held["captures"] = held["captures"].assign(start_ns=None)
    told = {n: t.astype(object).where(t.notna(), None).to_dict("list") for n, t in held.items()}
    return MemoryTables(told | {"lifecycle": {"kind": ["eval"], "start_ns": [T0], "end_ns": [T0 + S]}})


def test_steps_and_collectives_of_captures_without_a_time_of_day_are_found_beside_entries_that_have_one(gpus):
    run, dated = gpus
    tables = without_days(run)
    of, met = timeline(tables, {}), meetings(tables)
    assert of.dated and of.origin_ns == T0
    parts = [n for n in range(of.events) if "nccl" in of.names[of.name[n]].casefold()]
    found = [[a for a in arrows(of, tables, met, n).arrows if a.kind == COLLECTIVE] for n in parts]
    assert [len(some) for some in found] == [1] * 2 * MEETINGS
    event = next(n for n in range(of.events) if of.names[of.name[n]].startswith("ProfilerStep"))
    begin, took = (int(column[event]) for column in (of.tiles.start, of.tiles.dur))
    capture = int(of.capture[event])
    steps = {"step": [3], "capture": [capture], "start_ns": [begin // 1000], "dur_ns": [took // 1000]}
    told = MemoryTables({"steps": steps, "captures": tables.arrow("captures").to_pydict()})
    assert step(of, told, 3).start == begin


def test_a_bundled_collective_leads_to_its_part_on_the_other_rank(profiled):
    run, of = profiled
    met = meetings(run.tables)
    rows = np.flatnonzero(met.comparable)
    for row in rows[:: len(rows) // 4]:
        tick = (int(met.start_ns[row]) - of.origin_ns) * 1000
        near = np.flatnonzero((of.tiles.start >= tick) & (of.tiles.start < tick + 1000) & (of.event != NONE))
        mine = [n for n in near if of.capture[n] == met.capture[row]]
        found = [a for n in mine for a in arrows(of, run.tables, met, int(n)).arrows if a.kind == COLLECTIVE]
        [other] = np.flatnonzero((met.meeting == met.meeting[row]) & (met.rank != met.rank[row]))
        start = (int(met.start_ns[other]) - of.origin_ns) * 1000
        assert [int(of.tiles.start[a.target]) // 1000 * 1000 for a in found] == [start]


def test_the_request_of_a_stretch_is_chosen_before_one_of_which_more_lies_in_it():
    requests = {
        "replica": ["a", "a"],
        "status": ["completed"] * 2,
        "arrival_ns": [T0, T0 + S],
        "scheduled_ns": [T0 + 4 * S, T0 + S],
        "first_token_ns": [T0 + 5 * S, T0 + 2 * S],
        "last_token_ns": [T0 + 9 * S, T0 + 8 * S],
    }
    of = timeline(MemoryTables({"requests": requests}), {})
    lane = next(one for one in of.lanes if one.lane.role == "request")
    event = longest_in(of, between(of, T0, T0 + 9 * S), set(range(lane.first_row, lane.first_row + lane.rows)))
    assert event is not None and of.number[event] == 0


def test_a_graph_of_many_kernels_tells_some_and_counts_the_rest():
    count = MOST + 10
    tables = MemoryTables(
        {
            "captures": {"capture": [0], "start_ns": [T0], "host": ["a"]},
            "ops": {
                "capture": [0, 0], "op_id": [0, 1], "host": ["a", "a"], "device": [None, 0],
                "line": ["thread", "stream"], "role": ["host", "compute"], "op": ["cudaGraphLaunch", "kernel"],
                "category": ["host", "other"],
            },
            "op_events": {
                "capture": [0] * (count + 1), "event": list(range(count + 1)), "op_id": [0] + [1] * count,
                "device": [None] + [0] * count, "start_ps": [0] + [1000 * n for n in range(1, count + 1)],
                "dur_ps": [500] * (count + 1),
            },
            "launches": {
                "capture": [0] * count, "event": list(range(1, count + 1)), "device": [0] * count,
                "call_event": [0] * count, "call_start_ps": [0] * count, "call_dur_ps": [500] * count,
            },
        }
    )  # fmt: skip
    of = timeline(tables, {})
    call = int(np.flatnonzero(of.event == 0)[0])
    found = arrows(of, tables, None, call)
    assert len(found.arrows) == MOST and found.more == 10
    starts = [int(of.tiles.start[a.target]) for a in found.arrows]
    assert starts == sorted(starts) and {a.source for a in found.arrows} == {call}


def test_what_no_table_tells_of_has_no_arrows():
    tables, of = stepped()
    assert arrows(of, tables, None, 0).arrows == ()
