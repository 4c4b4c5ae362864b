"""One slow link: told where most of what its ranks share is slow, never from one operation of many."""

import numpy as np
import pandas as pd
import pytest

from analyzers.findings.rules.network import slow_groups, slow_whole
from tests.conftest import seeds


def sent(executions, operations, draw, slower=None):
    """`executions` of each operation on both ranks of two pairs; `slower`: (group, operations, times)."""
    rows = []
    for op in range(operations):
        for group in ("0,1", "2,3"):
            times = slower[2] if slower and group == slower[0] and op in slower[1] else 1.0
            for took in draw.lognormal(np.log(1e-3), 0.8, executions) * times:
                rows += [{"op": f"all-reduce.{op}", "group": group, "kind": "all-reduce", "moved_s": took}] * 2
    return pd.DataFrame(rows)


@pytest.mark.parametrize("seed", seeds(60))
def test_of_many_operations_seen_twice_no_link_is_accused(seed):
    assert slow_groups(sent(2, 12, np.random.default_rng(seed)), 4) == {}


@pytest.mark.parametrize("executions", [2, 40])
def test_a_link_that_is_slow_for_all_is(executions):
    rows = sent(executions, 12, np.random.default_rng(1), ("2,3", range(12), 60))
    assert list(slow_groups(rows, 4)) == ["2,3"]


def test_one_operation_alone_is_compared_too():
    rows = sent(40, 1, np.random.default_rng(1), ("0,1", range(1), 60))
    ((excess, usual, there, kind),) = slow_groups(rows, 4)["0,1"]
    assert there > 30 * usual and excess > 0 and kind == "all-reduce"


def messages(n_bytes: int, *moved_s: float) -> pd.DataFrame:
    return pd.DataFrame({"bytes": [float(n_bytes)] * len(moved_s), "moved_s": moved_s})


def test_a_network_is_slow_where_its_quickest_messages_are_and_busy_hosts_are_none():
    busy = messages(2_000_000, *[0.01] * 2, *[0.06] * 18)  # a few of 200 MB/s, most of 33
    slow = messages(2_000_000, *[0.05] * 2, *[0.06] * 18)
    assert slow_whole(busy) is None and slow_whole(busy, 0.5) is not None
    assert slow_whole(slow) == (
        "messages of 2.00 MB move at 33.3 MB/s, the quickest tenth of them at 34.0 MB/s, less than"
    )
    assert slow_whole(messages(1_000, *[0.0005] * 3, *[0.008] * 17)) is None
    assert slow_whole(messages(1_000, *[0.004] * 20)) == (
        "a message of 1.00 kB takes 4.00 ms, the quickest tenth of them 4.00 ms, more than"
    )
    assert slow_whole(messages(2_000_000, 0.06, 0.06, 0.06)) is None, "few tell nothing"
