"""Straggler waits: right in amount and name, whatever the clocks say, and silent where nobody is to blame."""

import random
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.ranks.waits import COMPARED, FIRST_STEP, KIND, LONE, NAMELESS, UNEQUAL, waits
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


STEP_NS = 100 * MS


def arriving(arrivals, group=None, step_ns=STEP_NS):
    """Tables of collectives that end for all at once; `arrivals[step][nth][rank]`: ns after the nth one's begin."""
    rows = [
        (f"host {rank}", rank, step, nth, step * step_ns + nth * step_ns // 2 + late)
        for step, collectives in enumerate(arrivals)
        for nth, ranks in enumerate(collectives)
        for rank, late in enumerate(ranks)
    ]
    ranks = sorted({r[1] for r in rows})
    collectives = {
        "capture": [r[1] for r in rows],
        "host": [r[0] for r in rows],
        "device": [0] * len(rows),
        "op": [f"all-reduce.{r[3]}" for r in rows],
        "kind": ["all-reduce"] * len(rows),
        "group": [group or ",".join(map(str, ranks))] * len(rows),
        "step": [r[2] for r in rows],
        "start_ns": [r[4] for r in rows],
        "end_ns": [r[2] * step_ns + r[3] * step_ns // 2 + step_ns // 2 for r in rows],
    }
    captures = {"capture": ranks, "host": [f"host {r}" for r in ranks], "start_ns": [0] * len(ranks)}
    steps = {"step": [1], "host": ["host 0"], "start_ns": [0], "dur_ns": [step_ns], "capture": [0]}
    return {"collectives": collectives, "captures": captures, "steps": steps}


def blame(columns):
    """(step, who is blamed, what is charged by host) of each step."""
    rows = waits(MemoryTables(columns)).rows
    rows = rows.astype({"host": str, "blamed": str})
    return [
        (step, *set(part["blamed"]), part.groupby("host")["blamed_ns"].sum().to_dict())
        for step, part in rows.groupby("step")
    ]


@pytest.mark.parametrize("seed", range(12))
def test_blame_by_the_definition(seed):
    rng = random.Random(seed)
    ranks, steps = rng.randint(3, 6), 16
    arrivals = [[[rng.randrange(2 * MS) for _ in range(ranks)] for _ in range(2)] for _ in range(steps)]
    for step in arrivals:  # one is late, by up to a tenth of the step; some others are by less
        for nth in (0, 1):
            step[nth][seed % 3] += rng.randrange(10 * MS)
            step[nth][rng.randrange(ranks)] += rng.randrange(4 * MS)
    waited = {  # the first step of a capture is not compared
        n: [sum(max(c) - c[rank] for c in arrivals[n]) for rank in range(ranks)] for n in range(1, steps)
    }
    apart = {}  # of each step: by how much the peers' median wait exceeds the least, and their MAD
    for n, sums in waited.items():
        least, *peers = sorted(sums)
        usual = statistics.median(peers)
        apart[n] = usual - least, statistics.median(abs(p - usual) for p in peers), peers[0] - least
    typical = statistics.median(spread for _, spread, _ in apart.values())
    found = blame(arriving(arrivals))
    assert found[0][1] == ""
    for n, who, charged in found[1:]:
        excess, spread, margin = apart[n]
        stands_out = excess > 3.5 * (1.4826 * max(spread, typical) + 0.01 * STEP_NS) and margin > 0.02 * STEP_NS
        culprit = waited[n].index(min(waited[n]))
        assert who == (f"host {culprit}" if stands_out else "")
        for rank in range(ranks):  # what the others waited, up to the margin
            due = min(waited[n][rank], margin) if stands_out and rank != culprit else 0
            assert charged[f"host {rank}"] == pytest.approx(due, abs=2)


@pytest.mark.parametrize(("late_ns", "blamed"), [(3_500_000, ""), (3_500_001, "host 1")])
def test_who_waited_no_less_than_the_limits_is_not_blamed(late_ns, blamed):
    """Peers wait alike: 3.5 times 1 % of a step of 100 ms."""
    assert blame(arriving([[[0, late_ns, 0, 0]]] * 5))[2][1] == blamed


@pytest.mark.parametrize(("margin_ns", "blamed"), [(2_000_000, ""), (2_000_001, "host 0")])
def test_a_margin_of_two_hundredths_of_a_step_is_not_enough(margin_ns, blamed):
    """Two peers of four wait long: the median is far from the least, the second least is near."""
    step = [[30 * MS, 30 * MS - margin_ns, 30 * MS - 20 * MS, 30 * MS - 20 * MS, 30 * MS - 20 * MS]]
    assert blame(arriving([step] * 5))[2][1] == blamed


def test_of_two_ranks_the_one_that_waited_less_is_blamed_and_of_one_none():
    assert blame(arriving([[[5 * MS, 0]]] * 3))[1] == (1, "host 0", {"host 0": 0, "host 1": 5 * MS})
    assert blame(arriving([[[5 * MS]]] * 3))[1] == (1, "", {"host 0": 0})


def test_a_rank_none_of_whose_waits_is_known_is_not_blamed_for_those_of_others():
    """Hosts 0 and 1 wait for each other in turn; host 2 only sends to a neighbour, where nobody waits for all."""
    columns = arriving([[[10 * MS, 0], [0, 10 * MS]]] * 4)
    sends = {"kind": "collective-permute", "op": "permute.1", "group": "2,3", "host": "host 2", "capture": 2}
    made = columns["collectives"]
    for step in range(4):
        row = {**sends, "device": 0, "step": step, "start_ns": step * STEP_NS, "end_ns": step * STEP_NS + 5}
        for name, values in made.items():
            values.append(row[name])
    assert all(who == "" for _, who, _ in blame(columns))


def test_a_step_that_a_rank_lacks_is_nobody_s_and_the_others_keep_theirs():
    columns = arriving([[[0, 30 * MS, 0, 0]]] * 6)
    made = columns["collectives"]
    gone = [
        n
        for n, (host, step) in enumerate(zip(made["host"], made["step"], strict=True))
        if (host, step) == ("host 3", 4)
    ]
    columns["collectives"] = {k: [x for n, x in enumerate(v) if n not in gone] for k, v in made.items()}
    columns["collectives"]["group"] = [
        "0,1,2" if s == 4 else g
        for s, g in zip(columns["collectives"]["step"], columns["collectives"]["group"], strict=True)
    ]
    assert [who for _, who, _ in blame(columns)] == ["", "host 1", "host 1", "host 1", "", "host 1"]


def test_collectives_between_steps_are_nobody_s_and_take_no_blame_from_steps():
    columns = arriving([[[0, 30 * MS, 0, 0]]] * 4)
    columns["collectives"]["step"] = [None if s == 3 else s for s in columns["collectives"]["step"]]
    assert [who for _, who, _ in blame(columns)] == ["", "", "host 1", "host 1"]  # -1 (no step), 0, 1, 2


def test_each_capture_of_each_device_has_a_first_step():
    """One host, two devices, two captures: of steps 0 to 2 and of 10 to 12. Device 1 comes 30 ms late, always."""
    rows = [(c, d, s) for c, first in ((0, 0), (1, 10)) for s in range(first, first + 3) for d in (0, 1)]
    collectives = {
        "capture": [c for c, _, _ in rows],
        "host": ["h"] * len(rows),
        "device": [d for _, d, _ in rows],
        "op": ["all-reduce.1"] * len(rows),
        "kind": ["all-reduce"] * len(rows),
        "group": ["0,1"] * len(rows),
        "step": [s for _, _, s in rows],
        "start_ns": [s * STEP_NS + d * 30 * MS for _, d, s in rows],
        "end_ns": [s * STEP_NS + 40 * MS for _, _, s in rows],
    }
    captures = {"capture": [0, 1], "host": ["h", "h"], "start_ns": [0, 10 * STEP_NS]}
    found = waits(MemoryTables({"collectives": collectives, "captures": captures})).rows
    assert found.groupby("step")["matched"].first().to_dict() == {s: s not in (0, 10) for s in (0, 1, 2, 10, 11, 12)}
    assert found.groupby("step")["unknown_ns"].sum().to_dict() == {0: 30 * MS, 1: 0, 2: 0, 10: 30 * MS, 11: 0, 12: 0}


def test_a_collective_whose_size_differs_between_ranks_says_so():
    columns = arriving([[[0, 1]]] * 2)
    columns["collectives"]["bytes"] = [8.0, 8.0, 8.0, 16.0]
    assert waits(MemoryTables(columns)).rows["reason"].tolist() == [FIRST_STEP] * 2 + [UNEQUAL] * 2
