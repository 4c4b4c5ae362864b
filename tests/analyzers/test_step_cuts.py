"""Steps cut out of a trace: what lies between is found whole, and overlapping steps count each instant once."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from analyzers.intervals import Spans, length
from analyzers.time.device_uses import Uses, enter_compute
from analyzers.time.step_accounts import _cut


@pytest.mark.parametrize("seed", range(20))
def test_what_lies_between_is_that_of_every_nanosecond(seed):
    rng = np.random.default_rng(seed)
    edges = np.unique(rng.integers(0, 200, 2 * int(rng.integers(0, 12))))
    edges = edges[: len(edges) // 2 * 2].astype(np.int64)
    start, end = sorted(int(x) for x in rng.integers(0, 200, 2))
    found = _cut(Spans(edges[::2], edges[1::2]), start, end)
    covered = {t for a, b in zip(edges[::2], edges[1::2], strict=True) for t in range(a, b) if start <= t < end}
    assert {t for a, b in zip(found.start, found.end, strict=True) for t in range(a, b)} == covered
    assert length(found) == len(covered)


def test_steps_that_overlap_as_printed_count_each_instant_once():
    ms = 1_000_000
    rows = pd.DataFrame(
        {
            "kept": [True, True],
            "model_flops_per_chip": [1e6, 1e6],
            "start_ns": [0, 9 * ms],  # the second begins a millisecond before the first ends
            "dur_ns": [10 * ms, 10 * ms],
        }
    )
    kept = Spans(np.array([0]), np.array([19 * ms]))
    trace = SimpleNamespace(flops_at=np.zeros(0, np.int64), flops=np.zeros(0))
    machine = SimpleNamespace(peak_flops_per_s=1e9, devices_per_chip=1)
    uses, none = Uses(), Spans(np.zeros(0, np.int64), np.zeros(0, np.int64))
    extra = SimpleNamespace(recomputed=0.0, padding=0.0)
    enter_compute(trace, kept, none, kept, SimpleNamespace(rows=rows), machine, extra, 0, uses)
    assert uses.unsplit == pytest.approx(0.0, abs=1e-12) and uses.unsplit >= 0
    assert uses.useful + uses.below == pytest.approx(0.019)
