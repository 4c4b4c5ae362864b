"""Where a step, a time and a name lie on a timeline, and which events belong to one elsewhere."""

import numpy as np
import pytest

from analyzers.ranks.meetings import meetings
from analyzers.timeline import timeline
from analyzers.timeline.arrows import COLLECTIVE, LAUNCH, MOST, arrows
from analyzers.timeline.lanes import NONE
from analyzers.timeline.moments import Stretch, between, longest_in, named, step
from errors import QuestionError
from runs.tables import MemoryTables, frame
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
    assert found.end >= found.start + int(mine.loc[mine["start_ns"].idxmin(), "dur_ns"]) * 1000


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
    assert found.event in mine and of.tiles.dur[found.event] == of.tiles.dur[mine].max()
    assert found.end - found.start == of.tiles.dur[found.event]
    half = Stretch(0, of.span // 2)
    inside = named(of, "AllReduce", half, None)
    assert (inside.start, inside.end) == (0, of.span // 2) and of.tiles.start[inside.event] < of.span // 2
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


def test_launches_lead_from_the_call_to_the_kernel_whichever_is_asked(profiled):
    run, of = profiled
    rows = frame(run.tables, "launches", ["capture", "event", "call_event", "call_start_ps"]).dropna()
    begun = dict(frame(run.tables, "captures", ["capture", "start_ns"]).itertuples(index=False))
    known = {(int(c), int(e)): n for n, (c, e) in enumerate(zip(of.capture, of.event, strict=True)) if e != NONE}
    for row in rows.iloc[:: max(len(rows) // 12, 1)].itertuples():
        kernel, call = known[row.capture, row.event], known[row.capture, row.call_event]
        for asked in (kernel, call):
            found = [a for a in arrows(of, run.tables, None, asked).arrows if a.kind == LAUNCH]
            assert (call, kernel) in [(a.source, a.target) for a in found]
        assert int(of.tiles.start[call]) == (begun[row.capture] - of.origin_ns) * 1000 + row.call_start_ps


def test_a_collective_leads_to_its_parts_on_all_other_ranks(profiled):
    run, of = profiled
    met = meetings(run.tables)
    assert met.comparable.any()
    rows = np.flatnonzero(met.comparable)
    seen = 0
    for row in rows[:: max(len(rows) // 8, 1)]:
        tick = (int(met.start_ns[row]) - of.origin_ns) * 1000
        host = met.ranks["host"].iloc[met.rank[row]]
        mine = [
            n for n in np.flatnonzero((of.tiles.start >= tick) & (of.tiles.start < tick + 1000)) if of.event[n] != NONE
        ]
        mine = [n for n in mine if _host(of, n) == host and of.capture[n] == met.capture[row]]
        for number in mine:
            found = [a for a in arrows(of, run.tables, met, int(number)).arrows if a.kind == COLLECTIVE]
            if not found:
                continue
            seen += 1
            others = np.flatnonzero((met.meeting == met.meeting[row]) & (met.rank != met.rank[row]))
            assert len(found) == min(len(others), MOST) and {a.source for a in found} == {number}
            starts = sorted((int(met.start_ns[n]) - of.origin_ns) * 1000 for n in others)
            assert sorted(int(of.tiles.start[a.target]) // 1000 * 1000 for a in found) == starts
    assert seen


def _host(of, number: int) -> str:
    row = int(np.searchsorted(of.tiles.first, number, side="right")) - 1
    return next(one.lane.host for one in of.lanes if one.first_row <= row < one.first_row + one.rows)


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
