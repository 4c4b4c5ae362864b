"""What a stretch of a timeline holds, counted event by event and tick by tick."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzers.timeline import selection as module
from analyzers.timeline import timeline
from analyzers.timeline.booked import ACCOUNT
from analyzers.timeline.lanes import DEVICE
from analyzers.timeline.pyramid import LEAST_EVENTS, pyramid, rows, union
from analyzers.timeline.selection import covered, covered_once, met, selection
from runs.tables import MemoryTables
from tests.analyzers.test_timeline import profile
from tests.bundled import bundled

S = 1_000_000_000
T0 = 1_760_000_000 * S


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    run = bundled(tmp_path_factory, "pytorch")
    return timeline(run.tables, run.manifest.facts)


def brute(of, row: int, start: int, end: int) -> tuple[list[int], int]:
    """(events of a row that meet a stretch, ticks of it that they cover)."""
    found, ticks = [], 0
    for n in range(int(of.first[row]), int(of.first[row + 1])):
        a, b = int(of.start[n]), int(of.start[n] + of.dur[n])
        if a < end and (b > start or a == b >= start):
            found.append(n)
            ticks += min(b, end) - max(a, start)
    return found, ticks


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(0, 25)), min_size=1, max_size=40),
    st.integers(-5, 70),
    st.integers(1, 80),
)
def test_events_and_covered_time_are_those_of_a_count_one_by_one(events, start, width):
    lane, begin, dur = (np.array([e[k] for e in events], dtype=np.int64) for k in range(3))
    order, row = rows(lane, begin, dur)
    deep = int(row.max()) + 1
    of = pyramid(lane[order] * deep + row, begin[order], dur[order], np.zeros(len(events), np.uint8), 3 * deep)
    for one in range(of.rows):
        found, ticks = brute(of, one, start, start + width)
        assert list(range(*met(of, one, start, start + width))) == found
        assert covered(of, one, start, start + width) == ticks


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(0, 25)), min_size=1, max_size=40),
    st.integers(-5, 70),
    st.integers(1, 80),
    st.sampled_from([1, 6, 1 << 20]),
)
def test_what_events_of_several_rows_cover_together_counts_once(events, start, width, chunk):
    lane, begin, dur = (np.array([e[k] for e in events], dtype=np.int64) for k in range(3))
    order, row = rows(lane, begin, dur)
    deep = int(row.max()) + 1
    of = pyramid(lane[order] * deep + row, begin[order], dur[order], np.zeros(len(events), np.uint8), 3 * deep)

    def ticks(lanes, low: int, high: int) -> int:
        held = [range(max(b, low), min(b + d, high)) for n, b, d in events if n in lanes]
        return len(set().union(*held))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "CHUNK", chunk)
        for chosen in ([0], [1], [2], [0, 2], [0, 1, 2]):
            mine = [n * deep + k for n in chosen for k in range(deep)]
            assert covered_once(of, mine, start, start + width) == ticks(chosen, start, start + width)
    assert union(lane, begin, begin + dur, 3).tolist() == [ticks([n], 0, 100) for n in range(3)]


def test_bins_of_a_level_and_events_at_the_ends_make_the_same_sum(monkeypatch):
    draw = np.random.default_rng(5)
    dur = draw.lognormal(6, 2.5, LEAST_EVENTS).astype(np.int64)
    start = draw.integers(0, int(dur.sum()) // 3, LEAST_EVENTS)
    order, row = rows(np.zeros(LEAST_EVENTS, np.int64), start, dur)
    of = pyramid(row, start[order], dur[order], np.zeros(LEAST_EVENTS, np.uint8), int(row.max()) + 1)
    span = int((of.start + of.dur).max())
    monkeypatch.setattr(module, "FEW", 3)
    used = []
    binned = module._binned
    monkeypatch.setattr(module, "_binned", lambda *a: used.append(1) or binned(*a))
    for bins in (4, 100):
        monkeypatch.setattr(module, "BINS", bins)
        for _ in range(25):
            a, b = sorted(int(n) for n in draw.integers(-span // 20, span + span // 20, 2))
            for one in range(0, of.rows, 4):
                ends = of.start[of.first[one] : of.first[one + 1]] + of.dur[of.first[one] : of.first[one + 1]]
                begins = of.start[of.first[one] : of.first[one + 1]]
                inside = np.maximum(np.minimum(ends, b + 1) - np.maximum(begins, a), 0)
                assert covered(of, one, a, b + 1) == int(inside.sum())
    assert len(used) > 50


def test_accounts_are_those_of_the_strips_of_the_chosen_rows(profiled):
    of = profiled
    strips = [lane for lane in of.lanes if lane.lane.role == ACCOUNT]
    devices = [lane for lane in strips if lane.lane.group == DEVICE]
    assert len(devices) == len(strips) > 1
    work = next(lane for lane in of.lanes if lane.lane.role == "compute")
    start, end = of.span // 3 + 7, of.span // 2 + 11

    def by_code(lanes) -> dict[int, int]:
        ticks: dict[int, int] = {}
        for lane in lanes:
            for n in brute(of.tiles, lane.first_row, start, end)[0]:
                a, b = int(of.tiles.start[n]), int(of.tiles.start[n] + of.tiles.dur[n])
                code = int(of.tiles.code[n])
                ticks[code] = ticks.get(code, 0) + min(b, end) - max(a, start)
        return {code: held for code, held in ticks.items() if held}

    for chosen, counted in (
        ([work.first_row], devices),
        ([devices[0].first_row], devices[:1]),
        ([devices[0].first_row, work.first_row], devices[:1]),
    ):
        assert selection(of, chosen, start, end).ticks == by_code(counted)


def test_over_the_whole_run_accounts_sum_to_the_strips_own_totals_and_parts_to_the_whole(profiled):
    of = profiled
    every = list(range(of.tiles.rows))
    whole = selection(of, every, 0, of.span)
    devices = [lane for lane in of.lanes if lane.lane.role == ACCOUNT and lane.lane.group == DEVICE]
    assert sum(whole.ticks.values()) == sum(lane.busy_ticks for lane in devices)
    assert [(one.lane, one.events, one.busy_ticks) for one in whole.lanes] == [
        (lane, lane.events, lane.busy_ticks) for lane in of.lanes if lane.lane.role != ACCOUNT
    ]
    assert whole.events == of.events - of.strips
    cuts = [0, 1, of.span // 7, of.span // 2, of.span // 2 + 1, of.span]
    parts = [selection(of, every, a, b) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
    for code, ticks in whole.ticks.items():
        assert sum(part.ticks.get(code, 0) for part in parts) == ticks
    assert sum(sum(one.busy_ticks for one in part.lanes) for part in parts) == sum(
        one.busy_ticks for one in whole.lanes
    )


def test_a_run_without_strips_has_no_accounts():
    tables = MemoryTables({"requests": {"arrival_ns": [T0], "last_token_ns": [T0 + S], "status": ["completed"]}})
    of = timeline(tables, {})
    found = selection(of, [0], 0, of.span + 1)
    assert found.ticks == {} and found.events == of.events > 0


def test_sums_of_long_stretches_keep_every_tick():
    lifecycle = {
        "kind": ["custom", "job"],
        "start_ns": [T0, T0],
        "end_ns": [T0 + 40 * 86_400 * S + 1, T0 + 40 * 86_400 * S + 3],
    }
    of = timeline(MemoryTables({"lifecycle": lifecycle}), {})
    strips = [lane for lane in of.lanes if lane.lane.role == ACCOUNT]
    held = selection(of, [], 0, of.span + 1).ticks
    assert sum(held.values()) == sum(lane.busy_ticks for lane in strips)
    for a in range(3):
        part = selection(of, [], a, of.span - a)
        assert sum(part.ticks.values()) == sum(brute(of.tiles, lane.first_row, a, of.span - a)[1] for lane in strips)


def test_a_lane_of_nested_calls_covers_no_more_than_the_stretch():
    calls = {"starts": [0, 10, 20, 30, 200], "durs": [100, 80, 60, 40, 50]}
    of = timeline(profile(**calls, op_id=[1] * 5), {})
    [lane] = [lane for lane in of.lanes if lane.lane.group == "host"]
    every = range(lane.first_row, lane.first_row + lane.rows)
    assert (lane.rows, lane.busy_ticks) == (4, 150)
    assert [one.busy_ticks for one in selection(of, every, 5, 220).lanes] == [95 + 20]
    assert [one.busy_ticks for one in selection(of, every, 30, 60).lanes] == [30]
    assert [one.busy_ticks for one in selection(of, every[1:3], 0, 250).lanes] == [80]
