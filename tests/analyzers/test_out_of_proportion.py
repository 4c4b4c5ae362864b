"""Runs of which a question once took the square of their size."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analyzers.device.critical_path.told import _NUMBER
from analyzers.device.modules.fold import _unfolded
from analyzers.difference.operations import plain
from analyzers.serving.latency.summary import _by_stage
from analyzers.serving.prefix_cache.replay import NEVER, _together, replay
from tests.proportion import soon

__all__ = ["soon"]  # the bound, of each test here
MANY = 100_000


@pytest.mark.parametrize(
    "name, told",
    [
        ("fusion.12", "fusion"),
        ("a_1.2", "a"),
        ("a.1b", "a.1b"),
        ("a1", "a1"),
        (".7", ""),
        ("a" + ".1" * MANY + "b", None),
    ],
)
def test_names_without_the_numbers_of_a_compilation(name, told):
    assert plain(name) == (name if told is None else told)


@pytest.mark.parametrize(
    "name, told",
    [("Block_[0-11]", "Block_"), ("a[b]c[d]", "a[b]c"), ("[[a]", ""), ("a]", None), ("[a]b", None)]
    + [("[" * MANY + "]b]", None), ("a" * MANY + "[" * MANY, None)],
)
def test_names_of_copies(name, told):
    assert _unfolded(name) == told


def test_numbers_at_the_end_of_names():
    assert _NUMBER.search("1" * MANY + "a") is None
    assert [m[1] for name in ("stream 7", "12") if (m := _NUMBER.search(name))] == ["7", "12"]


def test_as_many_caches_as_requests():
    caches = np.arange(MANY)[::-1]
    found = _together(np.repeat(caches, 2), caches)
    assert [f.tolist() for f in found[:2]] == [[2 * MANY - 2, 2 * MANY - 1], [2 * MANY - 4, 2 * MANY - 3]]


def test_as_many_loads_as_requests():
    names = [f"load {n}" for n in range(MANY // 20)]
    single: Any = SimpleNamespace(rows=pd.DataFrame({"stage": pd.array(names, dtype="string")}), for_stage=str)
    assert _by_stage(single, [*names, "another"]) == {name: name for name in names}


def test_caches_that_nobody_asks_for_a_block():
    played = replay(np.array([7, 7, 7, 8]), np.array([0, 1, 1, 2, 4]), caches=np.array([5, 9, 2, 5]))
    assert played.reach.tolist() == [NEVER, NEVER, 0, NEVER] and played.distinct == 3
