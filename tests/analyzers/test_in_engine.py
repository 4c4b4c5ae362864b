"""Passes of one replica alone, where requests name several: what one did tells nothing of another."""

import numpy as np
import pandas as pd

from analyzers.serving.in_engine import presence
from analyzers.serving.latency.passes import engine
from analyzers.serving.served import served
from runs.tables import MemoryTables

S = 1_000_000_000
START = 1_767_571_200 * S


def world() -> MemoryTables:
    """Replica a answers from 0 to 1 s, b from 5 to 6 s; passes are recorded of a, one a 0.1 s all the time."""
    arrival = [START, START + 5 * S]
    return MemoryTables(
        {
            "requests": {
                "id": ["r0", "r1"],
                "replica": ["a", "b"],
                "arrival_ns": arrival,
                "first_token_ns": [t + S // 2 for t in arrival],
                "last_token_ns": [t + S for t in arrival],
                "prompt_tokens": [10, 10],
                "output_tokens": [5, 5],
                "status": ["completed"] * 2,
            },
            "iterations": {
                "order": list(range(70)),
                "replica": ["a"] * 70,
                "source": ["x"] * 70,
                "start_ns": [START + n * S // 10 for n in range(70)],
                "dur_ns": [S // 20] * 70,
                "prefill_requests": [0] * 70,
                "prefill_tokens": [0] * 70,
                "decode_requests": [1] * 70,
                "decode_tokens": [1] * 70,
            },
        }
    )


def test_a_replica_is_busy_by_its_own_requests():
    tables = world()
    found = presence(served(tables), tables, START, START + 7 * S, ["a"])
    assert list(found) == ["a"] and found["a"].own
    assert (found["a"].busy.end - found["a"].busy.start).sum() == S


def test_gaps_of_another_replica_are_not_explained_by_its_passes():
    of = engine(world(), START)
    told = of.share(pd.Series(["a", "b"]), np.array([0.6, 5.6]), np.array([0.9, 5.9]))
    assert told.inside[0] > 0 and np.isnan(told.inside[1])
