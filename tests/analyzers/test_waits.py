"""Straggler waits: right in amount and name, whatever the clocks say, and silent where nobody is to blame."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.ranks.waits import COMPARED, FIRST_STEP, KIND, LONE, NAMELESS, waits
from runs.tables import MemoryTables
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


def test_the_first_step_of_a_capture_is_neither_waited_nor_measured_communication():
    """Host 2 is 80 ms late in every step; a transfer takes 10 ms. When the others came in step 0 nobody knows."""
    rows = waits(World(steps=5, extra_ms={(2, n): 80.0 for n in range(5)}).tables()).rows
    first = rows[rows["step"] == 0].groupby("host", observed=True)["unknown_ns"].sum()
    assert first.to_dict() == {"host 0": 80 * MS, "host 1": 80 * MS, "host 2": 0, "host 3": 80 * MS}
    assert rows.loc[rows["step"] > 0, "unknown_ns"].sum() == 0
    assert (rows.loc[rows["step"] == 0, "reason"] == FIRST_STEP).all()
    assert (rows.loc[rows["step"] > 0, "reason"] == COMPARED).all()


def test_a_capture_of_one_step_tells_nothing_of_waiting():
    rows = waits(World(steps=1, extra_ms={(2, 0): 80.0}).tables()).rows
    assert rows["wait_ns"].sum() == 0 and rows["unknown_ns"].sum() == (3 * 90 + 10) * MS


def test_each_row_that_was_not_compared_has_its_reason():
    collectives = {
        "host": ["a", "b"] * 4,
        "device": [0, 0] * 4,
        "rank": [0, 1] * 4,
        "op": ["all-reduce.1"] * 2 + ["permute.1"] * 2 + ["all-reduce.2"] * 2 + ["all-reduce.3"] * 2,
        "kind": ["all-reduce"] * 2 + ["permute"] * 2 + ["all-reduce"] * 4,
        "group": ["0,1"] * 4 + ["?,?"] * 2 + ["0,1,2"] * 2,
        "bytes": [8.0] * 8,
        "start_ns": [0] * 8,
        "end_ns": [5, 6, 7, 8] * 2,
    }
    rows = waits(MemoryTables({"collectives": collectives})).rows
    assert rows["reason"].tolist() == [COMPARED] * 2 + [KIND] * 2 + [NAMELESS] * 2 + [LONE] * 2
    assert rows["matched"].tolist() == [True] * 2 + [False] * 6


def test_collectives_without_a_step_leave_the_first_step_of_the_capture_what_it_is():
    world = World(steps=4, extra_ms={(2, n): 80.0 for n in range(4)})
    tables = world.tables()
    rows = tables.arrow("collectives").to_pydict()
    after = {name: values[-4:] for name, values in rows.items()}
    after["step"] = [None] * 4
    for name in ("start_ns", "end_ns"):
        after[name] = [v + 500 * MS for v in after[name]]
    joined = {name: [*values, *after[name]] for name, values in rows.items()}
    found = waits(MemoryTables({"collectives": joined, "captures": tables.arrow("captures").to_pydict()})).rows
    assert found.loc[found["step"] == 0, "unknown_ns"].sum() == 3 * 80 * MS
    assert found.loc[found["step"] == 0, "wait_ns"].sum() == 0


def test_collectives_of_no_known_host_are_ranks_by_number_and_nobody_is_blamed():
    """Times of a rank whose host no input tells count like any other's; it cannot be named."""
    rows = World(extra_ms=SLOW).tables().arrow("collectives").to_pydict()
    hosts = rows["host"]
    rows["rank"] = [int(host[-1]) for host in hosts]
    rows["host"] = [None if host == "host 2" else host for host in hosts]
    told = waits(MemoryTables({"collectives": rows})).rows
    known = waits(MemoryTables({"collectives": {**rows, "host": hosts}})).rows
    assert told["wait_ns"].tolist() == known["wait_ns"].tolist() and known["blamed_ns"].sum() == 3 * 80 * MS * 12
    assert set(told["blamed"]) == {""} and set(told["host"]) == {"", "host 0", "host 1", "host 3"}
    nowhere = waits(MemoryTables({"collectives": {**rows, "host": [None] * len(hosts)}})).rows
    assert nowhere["wait_ns"].tolist() == known["wait_ns"].tolist()
