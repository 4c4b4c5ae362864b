"""Stragglers: named by durations alone, silent where nobody is, and the same whatever the clocks say."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.ranks.stragglers import _cause
from analyzers.ranks.stragglers.rank_causes import CAUSES as SPLIT
from analyzers.ranks.stragglers.rank_causes import UNKNOWN
from errors import QuestionError
from runs.tables import MemoryTables
from tests.analyzers.rank_worlds import RankWorld
from tests.analyzers.straggling import ask, named
from tests.analyzers.worlds import World
from tests.conftest import seeds

CAUSES = ("compute", "copies", "other_communication", "input", "garbage_collection", "launch")


def healthy(seed):
    rng = np.random.default_rng(seed)
    ranks, segments = int(rng.integers(4, 65)), int(rng.choice([1, 1, 2, 4]))
    return RankWorld(
        ranks=ranks,
        steps=int(rng.integers(30, 100)),
        segments=segments,
        seed=seed,
        jitter=float(rng.choice([0.002, 0.005, 0.01, 0.02, 0.03])),
        tail=float(rng.choice([0, 0.01, 0.1])),
        cell=2 if segments > 1 and ranks % 2 == 0 else 0,
    )


def test_healthy_jobs_raise_no_alarm():
    """100 seeds of 4 to 64 ranks, jitter of 0.2 to 3 % and heavy tails: at most one may be called anything but none."""
    verdicts = [ask(healthy(seed)).verdict for seed in range(100)]
    assert sum(v != "none" for v in verdicts) <= 1


@pytest.mark.parametrize("tail", ["normal", "student", "lognormal", "uneven machines"])
def test_no_rank_is_called_persistent_by_chance(tail):
    for seed in range(25):
        rng = np.random.default_rng(seed)
        shape = (int(rng.integers(30, 60)), int(rng.choice([1, 4])), int(rng.integers(4, 65)))
        extra = {
            "normal": lambda shape=shape, rng=rng: np.abs(rng.normal(0, 0.04, shape)),
            "student": lambda shape=shape, rng=rng: np.clip(0.01 * rng.standard_t(2.5, shape), -0.1, 1),
            "lognormal": lambda shape=shape, rng=rng: 0.02 * rng.lognormal(0, 0.8, shape),
            "uneven machines": lambda shape=shape, rng=rng: (
                np.abs(rng.normal(0, 0.01, shape)) + rng.normal(0.03, 0.004, shape[2])
            ),
        }[tail]() / shape[1]
        sizes = {"steps": shape[0], "segments": shape[1], "ranks": shape[2]}
        verdict = ask(RankWorld(**sizes, jitter=0.002, tail=0, extra=extra, seed=seed)).verdict
        assert verdict not in ("persistent", "network")


def test_five_per_cent_of_a_step_is_found_in_any_rank():
    """100 jobs of 8 to 512 ranks with jitter of 0.5 to 2 %: the right rank, and no other, in 99 at least."""
    right = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        ranks, segments = (8, 16, 64, 128, 512)[seed % 5], int(rng.choice([1, 2, 4]))
        slow = int(rng.integers(ranks))
        world = RankWorld(
            ranks=ranks,
            steps=40,
            segments=segments,
            slow={slow: 0.05},
            tail=0.02,
            seed=seed,
            jitter=float(rng.choice([0.005, 0.01, 0.02])),
        )
        right += named(ask(world)) == ("persistent", [str(slow)])
    assert right >= 99


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("segments", [1, 3])
@pytest.mark.parametrize("ranks", [8, 64])
def test_the_cause_is_the_one_injected(cause, segments, ranks):
    per_host = 8 if cause in ("compute", "copies", "other_communication") else 1
    result = ask(
        RankWorld(
            ranks=ranks,
            steps=30,
            segments=segments,
            slow={5: 0.05},
            cause=cause,
            traced=True,
            per_host=per_host,
            clock_s=np.linspace(-3, 3, ranks),
        )
    )
    assert named(result) == ("persistent", ["5"])
    row = result.ranks.iloc[0]
    assert row["cause"] == cause and row["cause_share"] > 0.9
    excess = result.causes.set_index("rank").loc["5", cause]
    assert excess == pytest.approx(0.05, rel=0.1)


def test_blame_is_what_would_be_saved_if_the_rank_were_mended():
    """Against a simulation of the same job without the delay."""
    world = RankWorld(ranks=16, steps=40, slow={3: 0.1})
    mended = RankWorld(ranks=16, steps=40)
    saved = world.timeline()[2][-1].max() - mended.timeline()[2][-1].max()
    result = ask(world)
    row = result.ranks.iloc[0]
    assert row["blame_s"] * 40 / 39 == pytest.approx(saved, rel=0.05)  # of the first step nothing is said
    assert result.cost_chip_seconds == pytest.approx(row["blame_s"] * 15)
    assert row["share_of_steps"] == 1 and (row["first_step"], row["last_step"]) == (1, 39)
    assert row["confidence"] > 0.99 and row["lag_s"] == pytest.approx(0.1, rel=0.1)


def test_with_inner_groups_the_root_is_named_not_its_group():
    """Ranks 4 to 7 meet in each segment; across such cells rank r meets r mod 4. All of 4 to 7 come late there."""
    result = ask(RankWorld(ranks=16, steps=40, segments=3, cell=4, slow={6: 0.1}))
    assert named(result) == ("persistent", ["6"])
    blamed = result.every.set_index("rank")["blame_all_s"]
    assert blamed["6"] == pytest.approx(0.1 * 39, rel=0.12)
    assert blamed.drop("6").max() < 0.1 * blamed["6"]


def test_ranks_of_another_role_are_no_peers():
    """Stage 1 does a tenth more work by design; only in stage 0 is one rank slow."""
    rng = np.random.default_rng(0)
    tables = []
    for stage, slow in ((0, {2: 0.08}), (1, {})):
        columns = RankWorld(ranks=8, steps=30, slow=slow, step_s=1 + 0.1 * stage, seed=stage).tables()
        rows = columns.arrow("collectives").to_pydict()
        rows["rank"] = [r + 8 * stage for r in rows["rank"]]
        rows["host"] = [f"host-{stage}"] * len(rows["rank"])
        rows["group"] = [",".join(str(r + 8 * stage) for r in range(8))] * len(rows["rank"])
        rows["role"] = [f"stage {stage}"] * len(rows["rank"])
        rows["capture"] = [stage] * len(rows["rank"])
        tables.append(rows)
    both = {n: [*tables[0][n], *tables[1][n]] for n in tables[0]}
    order = rng.permutation(len(both["rank"]))
    both = {n: [v[i] for i in order] for n, v in both.items()}
    result = ask(MemoryTables({"collectives": both}))
    assert named(result) == ("persistent", ["2"])
    assert [r["role"] for r in result.to_dict()["roles"]] == ["stage 0", "stage 1"]
    both["role"] = [None] * len(order)
    meshed = ask(MemoryTables({"collectives": both}), {"parallelism": {"pipeline": 2, "data": 8}})
    assert named(meshed) == ("persistent", ["2"])


@given(st.lists(st.floats(-10, 10), min_size=8, max_size=8), st.lists(st.floats(-5e-5, 5e-5), min_size=8, max_size=8))
@settings(max_examples=8, deadline=None)
def test_clocks_change_nothing(clock, drift):
    def told(**more):
        world = RankWorld(ranks=8, steps=30, segments=2, cell=2, slow={4: 0.05}, traced=True, per_host=1, **more)
        return ask(world)

    plain, off = told(), told(clock_s=np.array(clock), drift=np.array(drift))
    assert named(off) == named(plain) == ("persistent", ["4"])
    assert off.ranks["cause"].tolist() == plain.ranks["cause"].tolist() == ["compute"]
    assert off.every["blame_all_s"].to_numpy() == pytest.approx(
        plain.every["blame_all_s"].to_numpy(), rel=2e-3, abs=2e-3
    )


def test_without_drift_the_answer_is_equal_to_the_nanosecond():
    def told(shift_s):
        clock = np.zeros(8)
        clock[3] = shift_s
        answer = ask(RankWorld(ranks=8, steps=30, slow={4: 0.05}, clock_s=clock)).to_dict()
        return {k: v for k, v in answer.items() if k not in ("clock_offsets_s", "resolution_s")}

    for shift_s in (0.001, -0.001, 0.1, -0.1, 10, -10):
        assert told(shift_s) == told(0)


def naive_last(tables):
    """Who starts most collectives last, by the clocks as they are."""
    rows = tables.arrow("collectives", ["rank", "step", "start_ns"]).to_pandas()
    last = rows.loc[rows.groupby("step")["start_ns"].idxmax(), "rank"]
    return str(last.mode().iloc[0])


def test_comparing_start_times_blames_the_wrong_rank_where_a_clock_is_off_by_5_ms():
    clock = np.zeros(8)
    clock[6] = 0.005
    true, off = (RankWorld(ranks=8, steps=30, step_s=0.05, slow={1: 0.06}, clock_s=c).tables() for c in (None, clock))
    assert naive_last(true) == "1" and naive_last(off) == "6"
    assert named(ask(true)) == named(ask(off)) == ("persistent", ["1"])


def test_offsets_and_drifts_are_shown():
    clock, drift = np.array([0, 0.004, -0.002, 0, 0, 7.5, 0, 0]), np.array([0, 0, 2e-5, 0, 0, 0, 0, 0])
    result = ask(RankWorld(ranks=8, steps=120, clock_s=clock, drift=drift, segments=2, cell=4))
    offsets = result.clock_offsets_s
    assert offsets["1"] - offsets["0"] == pytest.approx(0.004, abs=1e-5)
    assert offsets["5"] - offsets["0"] == pytest.approx(7.5, abs=1e-4)
    assert result.every.set_index("rank")["drift"]["2"] == pytest.approx(2e-5, rel=0.1)
    assert result.resolution_s < 1e-5


def test_rotating_one_step_network_and_imbalance_are_answers_too():
    rng = np.random.default_rng(0)
    shape = steps, segments, ranks = 60, 2, 16

    def told(**more):
        return ask(RankWorld(ranks=ranks, steps=steps, segments=segments, **more))

    pauses = np.zeros(shape)
    pauses[np.arange(steps), rng.integers(0, 2, steps), rng.integers(0, ranks, steps)] = 0.2
    assert told(extra=pauses).verdict == "rotating"
    once = np.zeros(shape)
    once[33, 1, 5] = 1.5
    result = told(extra=once)
    assert named(result) == ("one_step", ["5"])
    assert result.ranks.iloc[0]["first_step"] == 33 and result.cost_chip_seconds == pytest.approx(15 * 1.5, rel=0.02)
    batch = rng.lognormal(0, 0.4, (steps, 1, ranks)) * 0.1
    assert told(extra=np.concatenate([batch, 2 * batch], axis=1)).verdict == "imbalance"
    slow = told(slow_network=range(25, 50))
    assert named(slow) == ("network", [])
    assert slow.cost_chip_seconds == pytest.approx(25 * 0.2 * 1.5 * ranks, rel=0.05)


def test_lateness_that_follows_the_tokens_of_a_batch_is_imbalance():
    rng = np.random.default_rng(0)
    steps, ranks = 40, 8
    tokens = rng.lognormal(0, 0.4, (steps, ranks))
    world = RankWorld(ranks=ranks, steps=steps, per_host=1, extra=0.15 * tokens[:, None, :])
    columns = {"collectives": world.tables().arrow("collectives").to_pydict()}
    columns["steps"] = {
        "host": [f"host-{r}" for r in range(ranks) for _ in range(steps)],
        "step": [*range(steps)] * ranks,
        "dur_ns": [10**9] * (steps * ranks),
        "tokens_per_s_per_chip": tokens.T.ravel() * 1000,
    }
    result = ask(MemoryTables(columns))
    assert result.verdict == "imbalance" and "tokens" in result.why


def test_too_few_steps_are_said_to_be_too_few():
    result = ask(RankWorld(steps=7, slow={1: 0.02}))
    assert (result.verdict, result.why) == ("unknown", "only 6 steps were captured; 20 are needed")
    assert result.cost_chip_seconds is None and len(result.ranks) == 0
    assert result.every.sort_values("blame_all_s")["rank"].iloc[-1] == "1"  # what there is, is shown


def test_a_lag_clear_against_the_spread_needs_few_steps():
    result = ask(RankWorld(steps=7, slow={1: 0.5}))
    assert named(result) == ("persistent", ["1"]) and result.cost_chip_seconds == pytest.approx(6 * 0.5 * 7, rel=0.05)
    assert ask(RankWorld(steps=3, slow={1: 0.5})).verdict == "unknown"  # of 8, one is last twice in 1 of 8 by chance


@pytest.mark.parametrize("ranks, period", [(2, 3), (4, 2), (8, 5), (16, 10)])
def test_a_rank_late_every_nth_step_is_named_with_how_often(ranks, period):
    world = RankWorld(ranks=ranks, steps=60, slow={1: 0.2}, slow_steps=range(3, 60, period), jitter=0.02)
    result = ask(world)
    (row,) = result.ranks.to_dict("records")
    assert (result.verdict, row["rank"], row["every"]) == ("persistent", "1", period)
    assert row["steps"] == len(world.slow_steps)
    assert row["gain_chip_seconds"] == pytest.approx(0.2 * len(world.slow_steps) * ranks, rel=0.2)


def test_transfers_that_scatter_are_no_slow_network_without_a_quiet_stretch():
    """A fifth of the steps is quick, here and there: a network that is slow in all others has nothing to be held to."""
    world = RankWorld(ranks=4, steps=60)
    rows = world.tables().arrow("collectives").to_pydict()
    more = (np.random.default_rng(0).random(60) * 1e9).astype(int)
    rows["end_ns"] = [e + int(more[s]) for e, s in zip(rows["end_ns"], rows["step"], strict=True)]
    assert ask(MemoryTables({"collectives": rows})).verdict == "none"


def test_a_straggler_comes_and_goes():
    result = ask(RankWorld(ranks=32, steps=150, slow={9: 0.06}, slow_steps=range(40, 90)))
    row = result.ranks.iloc[0]
    assert named(result) == ("persistent", ["9"])
    assert (row["first_step"], row["last_step"]) == (pytest.approx(40, abs=2), pytest.approx(89, abs=2))
    fewer = ask(RankWorld(ranks=32, steps=150, slow={9: 0.06}, slow_steps=range(40, 48)))
    assert fewer.verdict == "none"  # eight steps are not persistent


def test_several_slow_ranks_are_named_and_their_cost_is_joint():
    result = ask(RankWorld(ranks=16, steps=40, slow={6: 0.1, 7: 0.1}))
    assert result.verdict == "persistent" and set(result.ranks["rank"]) == {"6", "7"}
    assert result.ranks["blame_s"].max() < 1  # mending one of them would save next to nothing
    assert result.cost_chip_seconds == pytest.approx(0.1 * 39 * 14, rel=0.1)


def in_turn(share, seed, ranks, steps=60, **more):
    """Ranks of which one, drawn anew, is late in each step by this share of it."""
    late = np.zeros((steps, 1, ranks))
    late[np.arange(steps), 0, np.random.default_rng(seed).integers(0, ranks, steps)] = share
    return ask(RankWorld(ranks=ranks, steps=steps, extra=late, **more))


@pytest.mark.parametrize("seed", seeds(10))
def test_ranks_late_in_turn_come_before_a_network_that_costs_less(seed):
    told = in_turn(0.4, seed, 2, slow_network=range(35, 58))
    assert told.verdict == "rotating" and told.cost_chip_seconds > 23 * 0.3 * 2
    assert "All collectives were slow in 23 steps as well." in told.notes


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("seed", seeds(40))
def test_few_ranks_may_be_late_in_turn_and_no_run_of_luck_makes_one_of_them_slow(ranks, seed):
    told = in_turn(0.4, seed, ranks)
    assert told.verdict == "rotating" and set(told.ranks["rank"]) == {str(r) for r in range(ranks)}
    assert told.cost_chip_seconds == pytest.approx(0.4 * 59 * (ranks - 1), rel=0.1)


def test_what_hosts_scatter_is_no_turn_of_two_and_one_of_two_may_be_slow():
    assert {in_turn(0.1, seed, 2).verdict for seed in range(10)} == {"none"}
    assert named(ask(RankWorld(ranks=2, steps=60, slow={1: 0.4}))) == ("persistent", ["1"])


@pytest.mark.parametrize("seed", seeds(10))
def test_one_of_two_that_is_always_last_is_late_however_much_that_scatters(seed):
    """By a fifth of a step at least, and in half of the steps for as long as one more."""
    late = np.zeros((60, 1, 2))
    late[:, 0, 1] = 0.2 + np.where(np.random.default_rng(seed).permutation(60) < 30, 1.0, 0.0)
    assert named(ask(RankWorld(ranks=2, steps=60, extra=late))) == ("persistent", ["1"])


@pytest.mark.parametrize(("times", "verdict"), [(1.6, "none"), (2.0, "network")])
def test_a_network_is_slow_against_its_own_quiet_steps_from_five_per_cent_of_the_time_on(times, verdict):
    """A fifth of a step is moving data, in a third of the steps for longer: for 4 or 6 % of the time."""
    assert ask(RankWorld(ranks=4, steps=60, slow_network=range(20, 40), slow_times=times)).verdict == verdict


def test_of_four_ranks_two_may_be_late_at_once_and_three_are_the_usual():
    told = ask(RankWorld(ranks=4, steps=60, slow={0: 0.3, 3: 0.3}))
    assert told.verdict == "persistent" and set(told.ranks["rank"]) == {"0", "3"}
    assert told.ranks["first_step"].max() <= 2 and told.ranks["last_step"].min() >= 57
    assert ask(RankWorld(ranks=4, steps=60, slow={0: 0.3, 1: 0.3, 3: 0.3})).verdict != "persistent"


def test_a_lag_of_which_nothing_longer_is_seen_has_no_reason():
    """As of both ends of a slow link, which come late out of one collective into the next."""
    known = dict.fromkeys((*SPLIT, UNKNOWN), 0.0)
    assert _cause(pd.Series(known | {"compute": 0.0003}), 0.1) == (UNKNOWN, None)
    assert _cause(pd.Series(known | {"compute": 0.09, "input": 0.01}), 0.1) == ("compute", pytest.approx(0.9))


def test_two_ranks_can_be_compared_and_a_wrong_one_is_told():
    world = RankWorld(ranks=16, steps=30, slow={5: 0.05}, cause="copies", traced=True)
    result = ask(world, compare="5,12")
    assert {"5", "12"} <= set(result.causes["rank"])
    with pytest.raises(QuestionError, match="no rank '99' in this run"):
        ask(world, compare="5,99")


def test_the_world_of_the_ledger():
    result = ask(World(extra_ms={(2, n): 80.0 for n in range(10, 25)}, jitter_ms=1.0))
    assert named(result) == ("persistent", ["host 2/0"])
    row = result.ranks.iloc[0]
    assert (row["first_step"], row["last_step"], row["cause"]) == (10, 24, "launch")
    assert result.cost_chip_seconds == pytest.approx(3 * 0.080 * 15, rel=0.05)


@pytest.mark.parametrize(
    "world",
    [
        RankWorld(),
        RankWorld(steps=3),
        RankWorld(ranks=1),
        RankWorld(ranks=2, slow={1: 0.2}, traced=True),
        RankWorld(ranks=16, slow={3: 0.2}, traced=True),
    ],
)
def test_answers_are_json(world):
    answer = ask(world).to_dict()
    json.dumps(answer, allow_nan=False)
    assert {"verdict", "ranks", "cost_chip_seconds", "clock_offsets_s", "resolution_s"} <= set(answer)
    for row in answer["ranks"]:
        assert {"rank", "blame_s", "share_of_steps", "cause", "confidence"} <= set(row)
        assert isinstance(row["rank"], int) and 0 <= row["confidence"] <= 1
