"""The timeline: every event in a row of its own, and every level as much as the events are."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzers.timeline import analyze, gathered, timeline
from analyzers.timeline.booked import ACCOUNT
from analyzers.timeline.lanes import CODE, CODES
from analyzers.timeline.pyramid import LEAST_EVENTS, Pyramid, pyramid, rows
from analyzers.timeline.window import RAW_MOST, window
from errors import QuestionError
from runs.run import facts_of
from runs.tables import MemoryTables

S = 1_000_000_000
T0 = 1_760_000_000 * S


def made(seed: int, count: int, lanes: int = 3, longest: float = 2.5) -> tuple[Pyramid, np.ndarray]:
    """Events that overlap, nest and last from nothing to a thousandfold of the usual, and their rows."""
    draw = np.random.default_rng(seed)
    lane = draw.integers(0, lanes, count)
    dur = draw.lognormal(6, longest, count).astype(np.int64)
    dur[draw.random(count) < 0.05] = 0
    start = draw.integers(0, max(int(dur.sum()) // 4, 1), count)
    order, row = rows(lane, start, dur)
    deep = [int(row[lane[order] == n].max(initial=-1)) + 1 for n in range(lanes)]
    whole = np.concatenate([[0], np.cumsum(deep)])[lane[order]] + row
    code = draw.integers(0, 7, count).astype(np.uint8)
    return pyramid(whole, start[order], dur[order], code[order], sum(deep)), whole


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(0, 25)), max_size=40))
def test_in_a_row_no_event_meets_another_and_each_is_in_the_lowest_that_is_free(events):
    lane, start, dur = (np.array([e[k] for e in events], dtype=np.int64) for k in range(3))
    order, row = rows(lane, start, dur)
    assert sorted(order.tolist()) == list(range(len(events)))
    placed: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for at, r in zip(order, row, strict=True):
        mine = (int(start[at]), int(start[at] + dur[at]))
        for lower in range(int(r)):
            assert any(a <= mine[0] < b for a, b in placed[int(lane[at]), lower])
        assert all(b <= mine[0] for _, b in placed.get((int(lane[at]), int(r)), []))
        placed.setdefault((int(lane[at]), int(r)), []).append(mine)


@given(st.integers(0, 1 << 32), st.integers(1, 400))
def test_many_events_at_once_are_in_the_lowest_rows_that_are_free(seed, count):
    draw = np.random.default_rng(seed)
    lane, start = draw.integers(0, 2, count), draw.integers(0, 50, count)
    dur = draw.integers(0, 300, count)
    order, row = rows(lane, start, dur)
    ends: dict[int, list[int]] = {}
    for at, r in zip(order.tolist(), row.tolist(), strict=True):
        mine = ends.setdefault(int(lane[at]), [])
        assert r == next((n for n, end in enumerate(mine) if end <= start[at]), len(mine))
        mine[r : r + 1] = [int(start[at] + dur[at])]


def test_events_that_all_meet_one_another_are_not_the_square_of_the_work():
    many, none = 300_000, np.zeros(0, np.int64)
    rows(none, none, none)  # compiled before it is measured
    begun = time.process_time()
    _, row = rows(np.zeros(many, np.int64), np.arange(many), np.full(many, 10 * many))
    assert row.tolist() == list(range(many)) and time.process_time() - begun < 3


def test_every_level_holds_every_event_and_every_tick_of_them():
    of, _ = made(1, LEAST_EVENTS + 1)
    assert len(of.levels) > 8
    for _, events, busy in of.sums():
        assert (events, busy) == (len(of.start), int(of.dur.sum()))


def brute(of: Pyramid, level, row: int) -> dict[int, tuple[int, int, dict[int, int]]]:
    """busy, count and ticks by account of each bin of a row, event by event."""
    bins: dict[int, tuple[int, int, dict[int, int]]] = {}
    width = 1 << level.shift
    for i in range(int(of.first[row]), int(of.first[row + 1])):
        at, dur, code = int(of.start[i]), int(of.dur[i]), int(of.code[i])
        if dur >= width:
            continue
        for n in range(at // width, max(at + dur - 1, at) // width + 1):
            part = max(min(at + dur, (n + 1) * width) - max(at, n * width), 0)
            busy, count, by = bins.get(n, (0, 0, {}))
            by[code] = by.get(code, 0) + part
            bins[n] = (busy + part, count + (n == at // width), by)
    return bins


def test_bins_are_what_their_events_sum_up_to():
    of, _ = made(2, LEAST_EVENTS)
    for level in (of.levels[0], of.levels[len(of.levels) // 2], of.levels[-1]):
        for row in range(0, of.rows, 3):
            mine = slice(int(level.first[row]), int(level.first[row + 1]))
            told = brute(of, level, row)
            assert level.bins[mine].tolist() == sorted(told)
            for n, busy, count, code, longest in zip(
                level.bins[mine],
                level.busy[mine],
                level.count[mine],
                level.code[mine],
                level.longest[mine],
                strict=True,
            ):
                assert (busy, count) == told[n][:2]
                assert told[n][2][code] == max(told[n][2].values())
                inside = [i for i in range(int(of.first[row]), int(of.first[row + 1])) if _meets(of, level, i, int(n))]
                assert of.dur[longest] == max(of.dur[i] for i in inside) and longest in inside


def _meets(of: Pyramid, level, i: int, n: int) -> bool:
    width, at, dur = 1 << level.shift, int(of.start[i]), int(of.dur[i])
    return dur < width and at // width <= n <= max(at + dur - 1, at) // width


@pytest.mark.parametrize("part", [1, 3, 40, 900, 100_000])
def test_a_window_shows_all_that_lies_in_it_and_no_more_than_a_screen_can(part):
    of, _ = made(3, LEAST_EVENTS)
    span = int((of.start + of.dur).max())
    for middle in (span // 7, span // 2, span - 1):
        start, end = middle - span // (2 * part), middle + span // (2 * part) + 1
        shown = window(of, np.arange(of.rows), start, end, 500)
        assert len(shown.row) <= max(of.rows * (2 * 500 + 4) * 2, RAW_MOST)
        for row in range(of.rows):
            mine = shown.row == row
            begins, ends = shown.start[mine], shown.end[mine]
            assert (np.diff(begins) >= 0).all()
            for i in range(int(of.first[row]), int(of.first[row + 1])):
                a, b = int(of.start[i]), int(of.start[i] + of.dur[i])
                if a < end and b > start or start <= a == b < end:
                    at = min(max(a, start), max(b - 1, a))
                    assert ((begins <= at) & ((ends > at) | (begins == ends) & (begins == at))).any(), (row, i)


def test_a_window_before_all_of_one_instant_or_of_everything_is_no_trouble():
    of, _ = made(4, 50, longest=1.0)
    span = int((of.start + of.dur).max())
    every = np.arange(of.rows)
    assert len(window(of, every, -(1 << 60), -5, 100).row) == 0
    assert len(window(of, every, span + 10, 1 << 61, 100).row) == 0
    assert int(window(of, every, -(1 << 61), 1 << 61, 10).count.sum()) == 50
    assert len(window(of, np.zeros(0, np.int64), 0, span, 10).row) == 0


def profile(starts, durs, **more) -> MemoryTables:
    """One device of one host, a kernel in each place."""
    count = len(starts)
    return MemoryTables(
        {
            "captures": {"capture": [0], "host": ["a"], "start_ns": [T0], "stop_ns": [None]},
            "ops": {
                "capture": [0, 0],
                "op_id": [0, 1],
                "host": ["a", "a"],
                "device": [0, None],
                "line": ["XLA Ops", "python"],
                "role": ["compute", "host"],
                "op": ["dot.1", "call"],
                "category": ["matmul", "host"],
            },
            "op_events": {
                "capture": [0] * count,
                "event": list(range(count)),
                "device": [0] * count,
                "op_id": more.get("op_id", [0] * count),
                "start_ps": starts,
                "dur_ps": durs,
            },
        }
    )


def test_events_stand_at_their_captures_time_to_the_picosecond():
    of = timeline(profile([0, 1_501, 3_000], [1_500, 3, 7]), {})
    assert (of.tick_ps, of.origin_ns, of.dated) == (1, T0, True)
    lane = next(row for row in of.lanes if row.lane.role == "compute")
    mine = slice(int(of.tiles.first[lane.first_row]), int(of.tiles.first[lane.first_row + 1]))
    assert of.tiles.start[mine].tolist() == [0, 1_501, 3_000] and of.tiles.dur[mine].tolist() == [1_500, 3, 7]
    assert {CODES[c] for c in of.tiles.code[mine]} == {"useful_maths"}


def test_what_ends_before_it_begins_is_an_instant_and_what_is_of_no_operation_is_counted():
    answer = analyze(profile([0, 10, 20, 30], [5, -3, 5, 5], op_id=[0, 1, 0, 9]), {}, {})
    told = answer.to_dict()
    assert (told["events_stored"], told["events_in_tiles"]) == (4, 3)
    assert [n for n in answer.notes if n.startswith("1 events end before they begin")]
    assert [n for n in answer.notes if n.startswith("1 events are not drawn: they have no operation")]
    assert next(lane for lane in told["lanes"] if lane["group"] == "host")["busy_s"] == 0


def test_a_year_among_nanoseconds_counts_in_nanoseconds():
    year = 365 * 86_400 * S
    lifecycle = {
        "kind": ["custom", "eval", "checkpoint_save"],
        "start_ns": [T0, T0 + 5, T0 + 7],
        "end_ns": [T0 + year, T0 + 6, T0 + 9],
        "detail": ["a year", None, None],
    }
    of = timeline(MemoryTables({"lifecycle": lifecycle}), {})
    assert of.tick_ps == 1_000 and of.span == year
    kinds = {of.names[n]: int(d) for n, d in zip(of.name, of.tiles.dur, strict=True) if d < year}
    assert kinds["eval"] == 1 and kinds["checkpoint save"] == 2
    assert [r.rows for r in of.lanes if r.lane.role == "job"] == [2]


def test_requests_keep_their_phases_in_one_row():
    requests = {
        "id": ["a", "b", "c"],
        "arrival_ns": [T0, T0 + 10, T0 + 200],
        "scheduled_ns": [T0 + 5, None, T0 + 200],
        "first_token_ns": [T0 + 20, T0 + 30, None],
        "last_token_ns": [T0 + 100, T0 + 90, T0 + 260],
    }
    of = timeline(MemoryTables({"requests": requests}), {})
    [lane] = of.lanes
    assert lane.rows == 2 and lane.events == 3 + 2 + 1
    by_request: dict[int, set[int]] = {}
    for i, request in enumerate(of.number):
        by_request.setdefault(int(request), set()).add(int(np.searchsorted(of.tiles.first, i, side="right")) - 1)
    assert all(len(row) == 1 for row in by_request.values())
    assert int(of.tiles.dur.sum()) == (100 + 80 + 60) * 1_000
    told: dict[int, list[tuple[str, str]]] = {}
    for name, code, request in zip(of.name, of.tiles.code, of.number, strict=True):
        told.setdefault(int(request), []).append((of.names[name], CODES[code]))
    assert told[0] == [("queue", "scheduling"), ("prefill", "prefill"), ("decode", "decode")]
    assert told[1] == [("until the first token", "served"), ("decode", "decode")]  # it may have waited for all of that
    assert told[2] == [("served", "served")]


def test_captures_without_a_time_of_day_begin_at_nought():
    tables = profile([5, 9], [1, 1])
    undated = MemoryTables(
        {
            "captures": {"capture": [0], "host": ["a"], "start_ns": [None]},
            **{name: tables.arrow(name).to_pydict() for name in ("ops", "op_events")},
        }
    )
    of = timeline(undated, {})
    assert not of.dated and of.span == 10 and analyze(undated, {}, {}).to_dict()["origin_ns"] is None


def test_a_run_without_a_place_in_time_says_what_would_have_one():
    with pytest.raises(QuestionError, match="nothing of this run has a place in time.*a profile"):
        analyze(MemoryTables({}), facts_of({"chip": "v5p"}), {})


def test_the_strip_of_a_device_is_what_the_ledger_books():
    ms = 1_000_000_000  # ps
    starts = [n * 10 * ms for n in range(6)]
    tables = profile(starts, [8 * ms] * 6)
    steps = {"step": list(range(6)), "host": ["a"] * 6, "capture": [0] * 6}
    steps |= {"start_ns": [T0 + n * 10_000_000 for n in range(6)], "dur_ns": [10_000_000] * 6}
    whole = MemoryTables(
        {
            "steps": steps,
            **{name: tables.arrow(name).to_pydict() for name in ("captures", "ops", "op_events")},
        }
    )
    of = timeline(whole, {})
    [strip] = [row for row in of.lanes if row.lane.role == ACCOUNT and row.lane.device == 0]
    mine = slice(int(of.tiles.first[strip.first_row]), int(of.tiles.first[strip.first_row + 1]))
    ticks = np.bincount(of.tiles.code[mine], weights=of.tiles.dur[mine], minlength=len(CODES))
    assert ticks[CODE["productive"]] == 6 * 8 * ms
    assert int(ticks.sum()) == strip.busy_ticks == int(strip.end - strip.start)


def test_a_served_run_has_no_strip_of_a_job():
    iterations = {"order": [0], "start_ns": [T0], "dur_ns": [S], "prefill_tokens": [5], "decode_tokens": [0]}
    requests = {
        "id": ["a"],
        "arrival_ns": [T0],
        "scheduled_ns": [T0],
        "first_token_ns": [T0 + S],
        "last_token_ns": [T0 + S],
    }
    lifecycle = {"kind": ["training_preparation"], "start_ns": [T0 - S], "end_ns": [T0]}
    of = timeline(MemoryTables({"iterations": iterations, "requests": requests, "lifecycle": lifecycle}), {})
    assert sorted(row.lane.role for row in of.lanes) == ["job", "pass", "request"]


def test_devices_that_number_their_operations_alike_have_lanes_of_their_own():
    ops = {"capture": [0, 0], "op_id": [5, 5], "host": ["a", "a"], "device": [0, 1], "line": ["x", "x"]}
    ops |= {"role": ["compute"] * 2, "op": ["dot", "add"], "category": ["matmul", "elementwise"]}
    events = {"capture": [0, 0, 0], "event": [0, 1, 2], "device": [0, 1, 1], "op_id": [5, 5, 5]}
    events |= {"start_ps": [0, 0, 10], "dur_ps": [7, 8, 9]}
    captures = {"capture": [0], "host": ["a"], "start_ns": [T0]}
    of = timeline(MemoryTables({"captures": captures, "ops": ops, "op_events": events}), {})
    told = {row.lane.device: (row.rows, row.events, row.busy_ticks) for row in of.lanes if row.lane.role == "compute"}
    assert told == {0: (1, 1, 7), 1: (1, 2, 17)}


def test_an_undated_capture_beside_dated_entries_stands_at_the_beginning():
    rows = {name: profile([5], [9]).arrow(name).to_pydict() for name in ("ops", "op_events")}
    captures = {"capture": [0], "host": ["a"], "start_ns": [None]}
    lifecycle = {"kind": ["eval"], "start_ns": [T0], "end_ns": [T0 + S]}
    of = timeline(MemoryTables({"captures": captures, "lifecycle": lifecycle, **rows}), {})
    assert of.origin_ns == T0 and of.span == S * 1_000
    [lane] = [row for row in of.lanes if row.lane.group == "device"]
    assert (lane.start, lane.end) == (5, 14)
    assert [n for n in of.notes if "no time of day" in n]


def test_what_has_no_begin_or_no_end_is_counted_and_never_put_somewhere():
    lifecycle = {"kind": ["eval", "custom", "custom"], "start_ns": [T0, T0, -5], "end_ns": [T0 + S, None, T0]}
    requests = {"id": ["a"], "arrival_ns": [T0], "last_token_ns": [None]}
    tables = profile([None, 3, 1 << 62], [1, None, 1])
    rows = {name: tables.arrow(name).to_pydict() for name in ("captures", "ops", "op_events")}
    answer = analyze(MemoryTables({"lifecycle": lifecycle, "requests": requests, **rows}), {}, {})
    told = answer.to_dict()
    assert (told["events_stored"], told["events_in_tiles"]) == (1 + 2 + 1 + 3, 1)
    assert [n.split(" are not drawn")[0] for n in answer.notes] == ["2 entries of the job", "1 requests", "3 events"]


def test_a_log_without_times_of_day_beside_a_profile_has_no_strip_of_devices():
    steps = {"step": [0, 1], "start_ns": [None, None], "dur_ns": [S, S], "host": ["a", "a"]}
    rows = {n: profile([0], [5]).arrow(n).to_pydict() for n in ("captures", "ops", "op_events")}
    of = timeline(MemoryTables({"steps": steps, **rows}), {})
    assert [row for row in of.lanes if row.lane.role == ACCOUNT] == []


def test_covered_time_of_more_than_106_days_is_told_whole():
    count = 200
    arrival = [T0 + n * S for n in range(count)]
    requests = {"id": [str(n) for n in range(count)], "arrival_ns": arrival, "first_token_ns": arrival}
    requests |= {"last_token_ns": [t + 1_000_000 * S for t in arrival]}
    told = analyze(MemoryTables({"requests": requests}), {}, {}).to_dict()
    [lane] = told["lanes"]
    assert lane["busy_s"] == pytest.approx(1e6 + count - 1)  # that of each is told by the levels' sums
    wide = pyramid(
        np.arange(30_000), np.zeros(30_000, np.int64), np.full(30_000, 1 << 50), np.zeros(30_000, np.uint8), 30_000
    )
    assert all(busy == 30_000 << 50 for _, _, busy in wide.sums())


@pytest.mark.parametrize("number", [5, 10**13])
def test_one_event_of_any_number_has_a_timeline(number):
    passes = {"order": [number], "replica": ["r"], "start_ns": [T0], "dur_ns": [S], "decode_tokens": [1]}
    of = timeline(MemoryTables({"iterations": passes}), {})
    assert of.number.tolist() == [number] and of.events == 1


def test_the_origin_is_exact_where_an_undated_capture_begins_before_it():
    rows = {name: profile([-30], [9]).arrow(name).to_pydict() for name in ("ops", "op_events")}
    captures = {"capture": [0], "host": ["a"], "start_ns": [None]}
    lifecycle = {"kind": ["eval"], "start_ns": [T0 + 5_000], "end_ns": [T0 + 6_000]}
    of = timeline(MemoryTables({"captures": captures, "lifecycle": lifecycle, **rows}), {})
    job = next(row for row in of.lanes if row.lane.group == "job" and row.lane.role == "job")
    assert of.origin_ns + job.start * of.tick_ps // 1_000 == T0 + 5_000


def test_a_row_of_many_is_drawn_by_bins_however_many_rows_hold_one_event():
    many, alone = 40_000, 50_000
    row = np.concatenate([np.zeros(many, np.int64), np.arange(1, alone + 1)])
    start = np.concatenate([np.arange(many) * 10, np.zeros(alone, np.int64)])
    of = pyramid(row, start, np.full(many + alone, 3), np.zeros(many + alone, np.uint8), alone + 1)
    assert of.levels and len(window(of, np.array([0]), 0, many * 10, 1_000).event) <= 4_000


def test_a_profile_on_a_clock_that_counts_from_the_start_of_its_machine_has_its_strip_beside_its_events():
    day = 86_400 * S
    tables = profile([0, 1_000_000], [500_000, 500_000])
    rows = {name: tables.arrow(name).to_pydict() for name in ("ops", "op_events")}
    captures = {"capture": [0], "host": ["a"], "start_ns": [100 * day], "stop_ns": [100 * day + 2_000]}
    of = timeline(MemoryTables({"captures": captures, **rows}), {})
    assert of.span * of.tick_ps <= 3_000_000


def threads(count: int) -> MemoryTables:
    """As many threads of a host, an event on each."""
    every = list(range(count))
    ops = {"capture": [0] * count, "op_id": every, "host": ["a"] * count, "device": [None] * count}
    ops |= {"line": [f"thread {n}" for n in every], "role": ["host"] * count, "op": ["f"] * count}
    events = {"capture": [0] * count, "event": every, "device": [None] * count, "op_id": every}
    events |= {"start_ps": [5 * n for n in every], "dur_ps": [3] * count}
    captures = {"capture": [0], "host": ["a"], "start_ns": [T0]}
    return MemoryTables({"captures": captures, "ops": ops | {"category": ["host"] * count}, "op_events": events})


def test_thousands_of_lanes_have_an_event_each_and_too_many_are_one_sentence(monkeypatch):
    of = timeline(threads(3_000), {})
    assert len(of.lanes) == of.tiles.rows == of.events == 3_000
    assert [row.lane.line for row in of.lanes[:3]] == ["thread 0", "thread 1", "thread 2"]
    monkeypatch.setattr(gathered, "MOST_LANES", 60)
    assert len(timeline(threads(60), {}).lanes) == 60
    with pytest.raises(QuestionError, match="more than 60 lanes.*fewer hosts"):
        timeline(threads(61), {})
