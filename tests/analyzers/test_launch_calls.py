"""Calls that launch, summed as numbers, are what a loop over their executions tells."""

import random
import statistics

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analyzers.device.launches.calls import calls
from analyzers.device.launches.seen import UNKNOWN, Launched, rows_of
from analyzers.device.launches.streams import queue_lengths

NAMES = ("cudaLaunchKernel", "cudaMemcpyAsync", "cudaGraphLaunch", "")


def ran(draw: random.Random, capture: int, graphs: bool) -> Launched:
    count, names = draw.randint(1, 40), draw.sample(NAMES, draw.randint(1, 4))
    start = np.sort(np.array([draw.randint(0, 10_000) for _ in range(count)], dtype=np.int64))
    call = np.array([draw.randrange(-1, len(names)) for _ in range(count)])
    begin = np.array([draw.randint(0, 30) * 100 for _ in range(count)], dtype=np.int64)
    known = np.array([draw.random() < 0.8 for _ in range(count)])
    return Launched(
        capture=capture,
        start=start,
        end=start + np.array([draw.randint(0, 90) for _ in range(count)]),
        op=np.zeros(count, np.int64),
        stream=np.zeros(count, np.int64),
        call=call,
        thread=np.array([draw.randrange(2) for _ in range(count)]),
        call_start=np.where(known, begin, UNKNOWN),
        call_end=np.where(known, begin + np.array([draw.randint(1, 60) for _ in range(count)]), UNKNOWN),
        graph=np.array([graphs and draw.random() < 0.4 for _ in range(count)], dtype=bool),
        streams=("stream 7",),
        calls=tuple(names),
        threads=("one", "two"),
    )


def by_hand(parts: list[Launched]) -> dict[str, dict]:
    found: dict[str, list[tuple]] = {}
    for part in parts:
        for n in np.flatnonzero(part.known).tolist():
            name = part.calls[part.call[n]] if part.call[n] >= 0 else ""
            took, delay = part.call_end[n] - part.call_start[n], max(part.start[n] - part.call_end[n], 0)
            key = (part.capture, int(part.call_start[n]), int(part.thread[n]))
            one = (key, int(took), int(delay), int(part.end[n] - part.start[n]), bool(part.graph[n]))
            found.setdefault(name, []).append(one)
    out = {}
    for name, rows in found.items():
        first = list({row[0]: row for row in reversed(rows)}.values()) if any(row[4] for row in rows) else rows
        out[name] = {
            "launches": len(first),
            "executions": len(rows),
            "call_s": sum(row[1] for row in first) / 1e9,
            "call_median_s": statistics.median(row[1] for row in first) / 1e9,
            "call_max_s": max(row[1] for row in first) / 1e9,
            "delay_median_s": statistics.median(row[2] for row in first) / 1e9,
            "execution_s": sum(row[3] for row in rows) / 1e9,
            "execution_median_s": statistics.median(row[3] for row in rows) / 1e9,
            "shorter_executions": sum(row[3] < row[1] for row in rows if not row[4]),
        }
    return out


@pytest.mark.parametrize("seed", range(20))
def test_calls_are_those_of_their_executions(seed):
    draw = random.Random(seed)
    parts = [ran(draw, capture, graphs=bool(seed % 2)) for capture in range(draw.randint(1, 3))]
    rows, told = calls(parts), by_hand(parts)
    assert sorted(rows["call"]) == sorted(told)
    assert rows["executions"].is_monotonic_decreasing
    for row in rows.to_dict("records"):
        assert row | told[row["call"]] == row
        assert row["delay_median_s"] <= row["delay_p99_s"] or row["launches"] == 1


@example([3, 10_000], [3, 4, 10_000, 10_001])
@given(st.lists(st.integers(0, 60), unique=True), st.lists(st.integers(0, 70)))
def test_rows_are_found_by_their_numbers(keys, wanted):
    keys = sorted(keys)
    at, found = rows_of(np.array(keys, dtype=np.int64), np.array(wanted, dtype=np.int64))
    assert found.tolist() == [one in keys for one in wanted]
    assert [keys[n] for n in at[found]] == [one for one in wanted if one in keys]


@pytest.mark.parametrize("seed", range(5))
def test_a_call_counts_before_an_execution_that_begins_with_it(seed):
    one = ran(random.Random(seed), 0, graphs=False)
    mine = np.flatnonzero(one.known)
    turns = sorted([(int(t), -1) for t in one.call_start[mine]] + [(int(t), 1) for t in one.start[mine]])
    told = queue_lengths(one, np.arange(len(one.start)))
    assert told.tolist() == [-sum(change for _, change in turns[: n + 1]) for n in range(len(turns))]
