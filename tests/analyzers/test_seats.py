"""Servers that took the place of others: what was held is held once."""

import numpy as np
import pytest

from analyzers.serving.in_engine import presence
from analyzers.serving.seats import seats
from runs.tables import MemoryTables

S = 1_000_000_000


@pytest.mark.parametrize(
    ("ends", "places"),
    [
        ([(0, 100), (0, 100), (0, 100)], [0, 1, 2]),
        ([(0, 100), (100, 200)], [0, 0]),
        ([(0, 100), (95, 200)], [0, 0]),  # a short time beside one another
        ([(0, 100), (80, 200)], [0, 1]),
        ([(0, 100), (95, 99)], [0, 1]),  # within the time of another
        ([(105, 200), (0, 100), (0, 110)], [0, 0, 1]),  # whose end lies nearest, and in any order
        ([(0, 10), (0, 100), (101, 200)], [0, 1, 1]),
        ([], []),
    ],
)
def test_a_server_takes_the_place_of_one_that_ended(ends, places):
    first, last = np.array(ends, dtype=float).reshape(-1, 2).T
    found = seats(first, last)
    assert sorted(set(found)) == sorted(set(places))
    assert all((found[i] == found[j]) == (places[i] == places[j]) for i in range(len(ends)) for j in range(i))


def test_a_rolling_update_leaves_no_time_in_which_half_of_the_servers_are_not_known():
    """Three pods, each followed by another; every sample counts a request."""
    rows = [
        (f"{age} {pod}", t)
        for pod in range(3)
        for age, at in (("old", 0), ("new", 300))
        for t in range(at, at + 300, 15)
    ]
    tables = MemoryTables(
        {
            "engine": {
                "ts_ns": [t * S for _, t in rows],
                "order": list(range(len(rows))),
                "replica": [name for name, _ in rows],
                "running": [4] * len(rows),
                "waiting": [0] * len(rows),
                "source": ["prometheus.json"] * len(rows),
            }
        }
    )
    found = presence(None, tables, 0, 585 * S, [])
    assert len(found) == 3
    for one in found.values():
        assert (one.busy.end - one.busy.start).sum() == pytest.approx((585 - 15) * S)  # between the two nothing is told
