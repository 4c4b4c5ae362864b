"""Rows kept in large pieces come out as they went in."""

import random

import numpy as np
import pytest

from collectors.device.kineto.chunks import Chunks
from tests.conftest import seeds

KIND = np.dtype([("a", "i8"), ("b", "i4")])


def rows(count, first):
    out = np.zeros(count, KIND)
    out["a"], out["b"] = np.arange(first, first + count), 7
    return out


@pytest.mark.parametrize("seed", seeds(30))
def test_all_rows_in_order(seed):
    rng, total = random.Random(seed), 0
    kept = Chunks(KIND, rng.randint(1, 9))
    for _ in range(rng.randint(0, 12)):
        count = rng.randint(0, 20)
        kept.append(rows(count, total))
        total += count
        assert sum(map(len, kept)) == total and bool(kept) == (total > 0)
    pieces = list(kept)
    assert all(len(p) for p in pieces) and len(pieces) == len(kept)
    assert np.array_equal(np.concatenate([np.zeros(0, KIND), *pieces]), rows(total, 0))
    assert np.array_equal(kept.drained(), rows(total, 0))
    assert not kept and not len(kept.drained())


def test_rows_go_on_after_a_piece_was_given_up():
    kept = Chunks(KIND, 4)
    kept.append(rows(6, 0))
    assert kept.pop()["a"].tolist() == [4, 5]
    kept.append(rows(3, 4))
    assert kept.drained()["a"].tolist() == [0, 1, 2, 3, 4, 5, 6]
