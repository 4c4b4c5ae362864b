"""Straggler waits: right in amount and name, whatever the clocks say, and silent where nobody is to blame."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.waits import waits
from tests.analyzers.worlds import MS, World

SLOW = {(2, n): 80.0 for n in range(10, 22)}


def test_the_slow_host_is_named_and_its_cost_is_what_the_others_waited():
    rows = waits(World(extra_ms=SLOW).tables()).rows
    charged = rows.groupby("blamed")["blamed_ns"].sum()
    assert set(charged.index) == {"", "host 2"}
    assert charged["host 2"] == 3 * 80 * MS * 12
    assert rows[rows["host"] == "host 2"]["wait_ns"].sum() == 0


@given(st.lists(st.integers(-10 * 10**9, 10 * 10**9), min_size=4, max_size=4))
@settings(max_examples=20, deadline=None)
def test_clocks_change_nothing(clocks):
    def told(clock_ns):
        rows = waits(World(extra_ms=SLOW, jitter_ms=2, clock_ns=clock_ns).tables()).rows
        return rows[["host", "step", "wait_ns", "blamed", "blamed_ns"]].reset_index(drop=True)

    assert told(tuple(clocks)).equals(told((0, 0, 0, 0)))


@pytest.mark.parametrize("seed", range(20))
def test_a_healthy_job_names_nobody_for_a_share_that_matters(seed):
    rows = waits(World(jitter_ms=1.0, steps=60, seed=seed).tables()).rows
    charged = rows[rows["blamed"] != ""].groupby("blamed")["blamed_ns"].sum()
    assert charged.max() < 0.02 * 60 * 77 * MS or not len(charged)


def test_a_straggler_in_every_step_is_named_too():
    rows = waits(World(extra_ms={(1, n): 40.0 for n in range(30)}).tables()).rows
    charged = rows.groupby("blamed")["blamed_ns"].sum()
    assert charged["host 1"] == 3 * 40 * MS * 29  # the first step of a capture may be cut, so it is left out


def test_a_rank_without_a_profile_leaves_the_wait_unknown():
    found = waits(World(extra_ms=SLOW, profiled=(0, 1)).tables())
    assert found.matched == 0
    assert found.rows["wait_ns"].sum() == 0
