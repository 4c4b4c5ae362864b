"""Ranks of a timeline by how late they came, and lanes moved so that clocks agree: nothing but the place changes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzers.ranks.meetings import meetings
from analyzers.timeline import timeline
from analyzers.timeline.booked import ACCOUNT
from analyzers.timeline.moments import step
from analyzers.timeline.pyramid import LEAST_EVENTS, pyramid
from analyzers.timeline.ranked import ranked
from analyzers.timeline.selection import selection
from analyzers.timeline.window import window
from errors import QuestionError
from tests.analyzers.rank_worlds import LEAVE_NS, RankWorld

RANKS, PER_HOST = 12, 4
CLOCK_S = np.repeat([0.0, 0.4, -0.25], PER_HOST)


@pytest.fixture(scope="module")
def world():
    made = RankWorld(ranks=RANKS, per_host=PER_HOST, steps=24, slow={6: 0.2, 1: 0.05}, traced=True, clock_s=CLOCK_S)
    tables = made.tables()
    of = timeline(tables, {})
    return made, tables, of, ranked(of, tables, {}, meetings(tables))


def test_lanes_of_the_latest_rank_stand_first_and_no_lane_is_lost(world):
    _, _, of, found = world
    assert [rank.label for rank in found.ranks][:2] == ["6", "1"]
    late = [rank.late_s for rank in found.ranks]
    assert late == sorted(late, reverse=True) and late[0] == pytest.approx(0.2, rel=0.1)
    assert sorted(found.order) == list(range(len(of.lanes)))
    devices = [of.lanes[n].lane for n in found.order if of.lanes[n].lane.group == "device"]
    places = list(dict.fromkeys((lane.host, lane.device) for lane in devices))
    assert places == [rank.place for rank in found.ranks]  # each rank's lanes together
    groups = [of.lanes[n].lane.group for n in found.order]
    assert groups == [row.lane.group for row in of.lanes]


def test_clocks_are_aligned_to_what_ranks_leave_a_collective_within(world):
    _, tables, of, found = world
    wanted = CLOCK_S - np.median(CLOCK_S)
    for rank in found.ranks:
        assert rank.offset_s == pytest.approx(wanted[int(rank.label)], abs=2 * LEAVE_NS / 1e9)
    met = meetings(tables)
    ahead_s = {rank.place: rank.offset_s for rank in found.ranks}
    places = list(zip(met.ranks["host"], met.ranks["device"], strict=True))
    end = met.end_ns - np.array([round(ahead_s[place] * 1e9) for place in places])[met.rank]
    for number in range(len(met.begins)):
        mine = met.meeting == number
        assert np.ptp(met.end_ns[mine]) > 0.6e9 and np.ptp(end[mine]) <= 2 * LEAVE_NS
    for lane, by, known in zip(of.lanes, found.ahead, found.known, strict=True):
        if lane.lane.host:
            host = int(lane.lane.host.removeprefix("host-"))
            assert known and by * of.tick_ps / 1e12 == pytest.approx(wanted[host * PER_HOST], abs=2 * LEAVE_NS / 1e9)
        else:
            assert not known and by == 0
    assert found.start == min(row.start - by for row, by in zip(of.lanes, found.ahead, strict=True))
    assert found.end - found.start < of.span - 0.5e12 / of.tick_ps


def test_a_selection_by_aligned_clocks_sums_the_same_events_and_the_same_time(world):
    _, _, of, found = world
    rows = list(range(of.tiles.rows))
    raw = selection(of, rows, 0, of.span)
    moved = selection(of, rows, found.start, found.end, found.ahead, found.end)
    assert moved.events == raw.events and moved.ticks == raw.ticks
    assert [one.busy_ticks for one in moved.lanes] == [one.busy_ticks for one in raw.lanes]
    ahead, start, end = found.rows(of), of.span // 3, of.span // 2
    some = selection(of, rows, start, end, found.ahead, found.end)
    for one in some.lanes:
        ticks = 0
        for row in range(one.lane.first_row, one.lane.first_row + one.lane.rows):
            mine = slice(int(of.tiles.first[row]), int(of.tiles.first[row + 1]))
            begin = of.tiles.start[mine] - ahead[row]
            ticks += int(np.maximum(np.minimum(begin + of.tiles.dur[mine], end) - np.maximum(begin, start), 0).sum())
        assert one.busy_ticks == ticks
    strips = [row for row in of.lanes if row.lane.role == ACCOUNT and row.lane.group == "device"]
    assert sum(some.ticks.values()) <= len(strips) * (end - start)


def test_a_step_of_a_profile_lies_where_aligned_clocks_have_it(world):
    made, tables, of, found = world
    begin, arrive, _ = made.timeline()
    first = np.arange(RANKS)[::PER_HOST]
    for number in (3, 11):
        raw = step(of, tables, number)
        aligned = step(of, tables, number, ahead_ns=found.hosts_ns())
        took = (arrive[number, -1, first].max() - begin[number, 0, first].min()) * 1e12 / of.tick_ps
        assert aligned.end - aligned.start == pytest.approx(took, abs=1e-5 * 1e12 / of.tick_ps)
        assert raw.end - raw.start > took + 0.6e12 / of.tick_ps


def test_without_collectives_of_all_ranks_it_is_refused(world):
    *_, of, _ = world
    alone = RankWorld(ranks=1, per_host=1, steps=4, traced=True).tables()
    with pytest.raises(QuestionError, match="no collective of this run was recorded by all"):
        ranked(of, alone, {}, meetings(alone))


def moved(of, rows, start, end, pixels, ahead) -> list[tuple]:
    """Row by row, and each row by its own clock."""
    found = []
    for n, (row, by) in enumerate(zip(rows, ahead, strict=True)):
        one = window(of, np.array([row]), start + by, end + by, pixels)
        columns = (one.start - by, one.end - by, one.code, one.share, one.count, one.event)
        found += [(n, *map(int, values)) for values in zip(*columns, strict=True)]
    return found


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(0, 25)), min_size=1, max_size=30),
    st.tuples(*[st.integers(-40, 40)] * 3),
    st.integers(-50, 70),
    st.integers(1, 80),
)
def test_marks_of_rows_that_are_moved_are_those_of_each_rows_own_window(events, ahead, start, width):
    lane, begin, dur = (np.array([e[k] for e in events], dtype=np.int64) for k in range(3))
    row = lane * len(events) + np.arange(len(events))  # none over another
    of = pyramid(row, begin, dur, np.zeros(len(events), np.uint8), 3 * len(events))
    every, by = np.arange(of.rows), np.repeat(np.array(ahead, dtype=np.int64), len(events))
    shown = window(of, every, start, start + width, 9, by)
    columns = (shown.row, shown.start, shown.end, shown.code, shown.share, shown.count, shown.event)
    told = [tuple(map(int, values)) for values in zip(*columns, strict=True)]
    assert told == moved(of, every.tolist(), start, start + width, 9, by.tolist())


@pytest.mark.parametrize("pixels", [40, 2_000, 400_000])
def test_bins_of_rows_that_are_moved_hold_what_they_held(pixels):
    draw = np.random.default_rng(3)
    row = np.repeat([0, 1], LEAST_EVENTS)
    dur = draw.integers(0, 9, 2 * LEAST_EVENTS)
    start = np.tile(np.arange(LEAST_EVENTS) * 20, 2) + draw.integers(0, 5, 2 * LEAST_EVENTS)
    of = pyramid(row, start, dur, np.zeros(2 * LEAST_EVENTS, np.uint8), 2)
    ahead, span = np.array([700, -1_300]), 20 * LEAST_EVENTS
    shown = window(of, np.array([0, 1]), -2_000, span + 2_000, pixels, ahead)
    assert int(shown.count.sum()) == 2 * LEAST_EVENTS
    told = [
        tuple(map(int, values))
        for values in zip(
            *(getattr(shown, n) for n in ("row", "start", "end", "code", "share", "count", "event")), strict=True
        )
    ]
    assert told == moved(of, [0, 1], -2_000, span + 2_000, pixels, ahead.tolist())
