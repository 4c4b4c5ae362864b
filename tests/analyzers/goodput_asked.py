"""Logs of jobs in seconds, asked for their goodput by the exact rules; every answer is checked to close."""

import json
import math

import numpy as np
import pytest

from analyzers.lost import goodput
from analyzers.lost.goodput.buckets import leaves
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.analyzers.worlds import EPOCH

S = 1_000_000_000


def ns(seconds):
    return None if seconds is None else EPOCH + round(seconds * S)


def job(steps, life, logged=None):
    """Tables of steps (number, start) and of life (kind, start, end, detail), in s after the epoch."""
    life = [(*row, None)[:4] for row in life]
    told = {"logged_ns": [ns(t) for t in logged]} if logged else {}
    return MemoryTables(
        {
            "steps": {
                "step": [n for n, _ in steps],
                "start_ns": [ns(t) for _, t in steps],
                "order": range(len(steps)),
                **told,
            },
            "lifecycle": {
                "kind": [k for k, *_ in life],
                "start_ns": [ns(a) for _, a, _, _ in life],
                "end_ns": [ns(b) for _, _, b, _ in life],
                "detail": [d for *_, d in life],
            },
        }
    )


def even(first, begin, count, every=2.0):
    """Steps that take `every` s each."""
    return [(first + i, begin + i * every) for i in range(count)]


def ask(tables, facts=None, **options):
    result = goodput.analyze(tables, facts_of(facts or {}), {"rules": "exact", **options})
    closes(result)
    return result


def closes(result):
    """Productive time and all leaves of badput sum to the total, and so does each attempt and each stretch of time."""
    parts = leaves(result.badput_s)
    assert "data_loading_async" not in parts
    assert all(s >= 0 for s in parts.values())
    assert math.isclose(result.productive_s + math.fsum(parts.values()), result.total_s, rel_tol=1e-9, abs_tol=1e-9)
    for table, productive in ((result.attempts, "productive_s"), (result.over_time, "productive")):
        if len(table):
            first = list(table.columns).index(productive)
            summed = table.iloc[:, first : list(table.columns).index("total_s")].sum(axis=1)
            assert np.allclose(summed.to_numpy(dtype=float), table["total_s"].to_numpy(dtype=float), atol=1e-9)
    if len(result.over_time):
        assert result.over_time["total_s"].sum() == pytest.approx(result.total_s, abs=1e-6)
        shares = result.over_time["cumulative_share"]
        if result.goodput_share is None:  # no step was read: no share of the time is told, at no moment
            assert shares.isna().all()
        else:
            assert shares.iloc[-1] == pytest.approx(result.goodput_share)
    json.dumps(result.to_dict(), allow_nan=False)


def at(*seconds):
    return tuple(f"{EPOCH / S + s:.6f}" for s in seconds)
