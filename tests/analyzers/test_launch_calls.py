"""Calls that launch, summed as numbers, are what a loop over their executions tells."""

import random
import statistics

import numpy as np
import pytest

from analyzers.device.launches.calls import calls
from analyzers.device.launches.seen import UNKNOWN, Launched

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
