"""Captures of one job at several times: which of them were taken together, whatever some ranks lack."""

import random

import numpy as np
import pytest

from analyzers.ranks.meetings import meetings
from runs.tables import MemoryTables

MINUTE = 60 * 10**9


def world(windows, ranks: int, lacks=(), clocks=None, steps: str = "none", gap: int = 10 * MINUTE) -> MemoryTables:
    """Every rank takes part in three collectives of each window that it does not lack. `windows`: how many;
    `clocks`: by rank, how far its clock is ahead; `steps`: none, apart (each window its own) or alike."""
    rows = {n: [] for n in ("capture", "host", "rank", "device", "kind", "op", "step", "seq", "start_ns", "end_ns")}
    captures = {"capture": [], "host": [], "start_ns": []}
    for window in range(windows):
        for rank in range(ranks):
            if (window, rank) in lacks:
                continue
            capture = window * ranks + rank
            begun = 10**18 + window * gap + (clocks or {}).get(rank, rank * 1000)
            for name, value in zip(captures, (capture, f"h{rank}", begun), strict=True):
                captures[name].append(value)
            for n in range(3):
                step = {"none": None, "apart": 10 * window + n, "alike": n}[steps]
                at = begun + n * 10**6
                values = (capture, f"h{rank}", rank, 0, "all-reduce", "a", step, n, at, at + 100 + rank)
                for name, value in zip(rows, values, strict=True):
                    rows[name].append(value)
    return MemoryTables({"collectives": rows, "captures": captures})


def windows_of(met, ranks: int) -> list[set[int]]:
    """The windows whose rows are in each meeting."""
    found: dict[int, set[int]] = {}
    for meeting, capture in zip(met.meeting.tolist(), met.capture.tolist(), strict=True):
        found.setdefault(meeting, set()).add(capture // ranks)
    return [*found.values()]


@pytest.mark.parametrize("steps", ["none", "apart", "alike"])
@pytest.mark.parametrize("seed", range(20))
def test_a_collective_is_never_matched_with_one_of_another_capture(seed, steps):
    rng = random.Random(seed)
    windows, ranks = rng.randrange(1, 5), rng.randrange(2, 5)
    lacks = {(w, r) for w in range(windows) for r in range(ranks) if rng.random() < 0.3}
    clocks = {r: rng.randrange(-MINUTE, MINUTE) for r in range(ranks)}
    if all((w, r) in lacks for w in range(windows) for r in range(ranks)):
        lacks = set()
    if steps != "apart" and all(sum((w, r) not in lacks for w in range(windows)) < 2 for r in range(ranks)):
        return  # one capture of each: without steps that tell more, wrong clocks look like that
    met = meetings(world(windows, ranks, lacks, clocks, steps))
    assert all(len(found) == 1 for found in windows_of(met, ranks))
    seen = [r for r in range(ranks) if not all((w, r) in lacks for w in range(windows))]
    whole = {w for w in range(windows) if len(seen) > 1 and not any((w, r) in lacks for r in seen)}
    assert {c // ranks for c in met.capture[met.complete].tolist()} == whole


def test_equal_numbers_of_captures_may_be_of_other_times():
    """Each of three ranks lacks another of three windows: the k-th of one is not the k-th of another."""
    met = meetings(world(3, 3, {(0, 0), (1, 1), (2, 2)}))
    assert all(len(found) == 1 for found in windows_of(met, 3)) and not met.complete.any()
    assert len(set(met.session.tolist())) == 3


@pytest.mark.parametrize("steps", ["none", "apart", "alike"])
def test_clocks_that_are_hours_off_keep_captures_together(steps):
    met = meetings(world(3, 3, clocks={1: 7 * 60 * MINUTE, 2: -30 * 60 * MINUTE}, steps=steps))
    assert met.complete.all() and all(len(found) == 1 for found in windows_of(met, 3))


def test_one_capture_of_each_rank_is_one_session_whatever_the_clocks():
    met = meetings(world(1, 3, clocks={1: 10**17}))
    assert met.complete.all() and set(met.session.tolist()) == {0}


def test_steps_tell_where_clocks_would_not():
    """Clocks that differ by just what lies between captures: the steps that both show decide."""
    met = meetings(world(2, 2, clocks={1: 10 * MINUTE}, steps="apart"))
    assert met.complete.all() and np.all(met.session == met.capture // 2)
