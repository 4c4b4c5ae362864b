"""What-if slowdown: pipelines whose truth is known by construction or by hand."""

import random
from dataclasses import replace

import numpy as np
import pytest

from analyzers.ranks import slowdown
from analyzers.ranks.slowdown.one_step import timeline
from analyzers.ranks.slowdown.ops import load
from analyzers.ranks.slowdown.times import NAMES, TYPES, Replays, ideal_durations
from errors import QuestionError
from runs.tables import MemoryTables
from tests.analyzers.asked_pipelines import ask, noisy
from tests.analyzers.pipelines import MS, Pipelines


def slow_worker(dp, stage, factor, ms):
    return lambda step, d, s, mb: round(ms * MS * (factor if (d, s) == (dp, stage) else 1))


def replays(tables):
    ops = load(tables)
    return Replays(ops, ideal_durations(ops))


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 4, 8), (4, 1, 3), (2, 4, 2), (3, 3, 9)])
def test_an_even_pipeline_is_not_slowed_down(shape):
    dp, stages, microbatches = shape
    world = Pipelines(dp=dp, stages=stages, microbatches=microbatches)
    result = ask(world.tables())
    assert result.s == pytest.approx(1, abs=1e-9) and result.waste == pytest.approx(0, abs=1e-9)
    assert result.cause == "none"
    assert result.t_ideal_s == pytest.approx(world.step_ns() / 1e9, rel=1e-12)
    assert result.validity["replay_error"] < 1e-12 and result.validity["trusted"]
    for parts in (result.by_stage, result.by_dp_rank, result.by_op_type):
        assert list(parts.values()) == pytest.approx([1] * len(parts), abs=1e-9)
    assert result.shares.worker is None and result.shares.last_stage is None


def test_a_slow_worker_by_hand():
    """2 replicas, 2 stages, 4 micro-batches, no communication: T = (4 + 1)(f + b) with all at the slow worker's pace
    but one pass through the other stage."""
    world = Pipelines(
        transfer_ns=0, collectives=False, forward=slow_worker(0, 1, 2.0, 10), backward=slow_worker(0, 1, 2.0, 20)
    )
    result = ask(world.tables(), {"chips": 8})
    mean = 30 * 1.25  # one of four workers takes twice as long
    assert result.t_s == pytest.approx((4 * 60 + 30) / 1e3)
    assert result.t_ideal_s == pytest.approx(5 * mean / 1e3)
    assert result.s == pytest.approx(270 / 187.5)
    assert result.waste == pytest.approx(1 - 187.5 / 270)
    # Only replica 0 keeps its durations: as above. Only replica 1 does: 5 x 30 ms, faster than the mean of the others.
    assert result.by_dp_rank == pytest.approx({0: 270 / 187.5, 1: 1.0})
    # Stage 1 alone keeps its durations: 4 x 60 + one pass of the mean; stage 0: 4 x 37.5 + one pass of 30.
    assert result.by_stage == pytest.approx({1: (240 + mean) / 187.5, 0: (150 + 30) / 187.5})
    assert result.worst == ((0, 1),) and result.cause == "worker"
    # Without it its own compute is the mean, 37.5 ms, and the rest is as it was.
    assert result.shares.worker == pytest.approx((270 - (4 * mean + 30)) / (270 - 187.5))
    assert result.cost_chip_seconds == pytest.approx((270 - 187.5) / 1e3 * 3 * 8)


def test_types_keep_their_own_durations_by_hand():
    world = Pipelines(transfer_ns=0, collectives=False, forward=slow_worker(0, 1, 3.0, 10))
    result = ask(world.tables())
    assert set(result.by_op_type) == {"forward-compute", "backward-compute", "forward-pp-comm", "backward-pp-comm"}
    assert result.by_op_type["backward-compute"] == pytest.approx(1)
    assert result.by_op_type["forward-compute"] == pytest.approx(result.s)


def test_a_long_last_stage():
    def long(ms):
        return lambda step, d, s, mb: ms * MS * (2 if s == 3 else 1)

    result = ask(Pipelines(dp=4, stages=4, microbatches=8, forward=long(10), backward=long(20)).tables())
    assert result.cause == "last stage" and result.shares.last_stage > 0.9
    assert result.shares.worker == pytest.approx(0, abs=1e-9)  # the others of the stage are as slow
    assert max(result.by_stage, key=result.by_stage.get) == 3
    assert result.by_dp_rank == pytest.approx(dict.fromkeys(range(4), result.s))


def test_a_long_first_stage_is_a_stage_of_its_own():
    result = ask(
        Pipelines(
            dp=2, stages=4, microbatches=8, forward=lambda step, d, s, mb: 10 * MS * (3 if s == 0 else 1)
        ).tables()
    )
    assert result.cause == "stage" and result.shares.stage > 0.9 > result.shares.last_stage


def test_with_one_replica_a_worker_is_a_stage():
    result = ask(Pipelines(dp=1, stages=4, microbatches=8, forward=slow_worker(0, 3, 3.0, 10)).tables())
    assert result.cause == "last stage"
    assert any("cannot be told from a long stage" in note for note in result.notes)


def test_pauses_at_different_times_are_garbage_collection():
    world = Pipelines(dp=4, stages=2, steps=8, pause=lambda step, d, s, mb: 400 * MS if (d + 4 * s) == step else 0)
    result = ask(world.tables())
    assert result.cause == "garbage collection"
    assert result.by_op_type["gc"] == pytest.approx(result.s)
    assert result.shares.gc == pytest.approx(1)


def lengths(spread, seed=0):
    rng = random.Random(seed)
    known = {}
    return lambda step, d, s, mb: known.setdefault((step, d, mb), rng.uniform(1 - spread, 1 + spread))


def test_micro_batches_of_different_lengths():
    length = lengths(0.8)
    world = Pipelines(
        dp=8,
        stages=4,
        microbatches=6,
        steps=6,
        forward=lambda *at: round(10 * MS * length(*at)),
        backward=lambda *at: round(20 * MS * length(*at)),
    )
    result = ask(world.tables())
    assert result.cause == "sequence imbalance"
    assert result.shares.correlation > 0.99 and result.shares.variation > 0.1
    assert result.shares.worker < 0.5


def test_noise_of_forward_and_backward_apart_is_no_sequence_imbalance():
    one, other = lengths(0.8, 1), lengths(0.8, 2)
    world = Pipelines(
        dp=8,
        stages=4,
        microbatches=6,
        steps=6,
        forward=lambda *at: round(20 * MS * one(*at)),
        backward=lambda *at: round(20 * MS * other(*at)),
    )
    result = ask(world.tables())
    assert abs(result.shares.correlation) < 0.3 and result.cause == "unknown"


def oracle(world, ideals, keep):
    """Step times by the other simulator, where operations that `keep` does not hold are ideal."""

    def spent(step, dp, stage, op, number):
        name = next(n for n in ideals if op in TYPES[n])
        return Pipelines.spent(world, step, dp, stage, op, number) if keep(dp, stage, op) else ideals[name]

    even = replace(world)
    even.spent = spent
    return [even.step_ns(step) / 1e9 for step in range(world.steps)]


@pytest.mark.parametrize("seed", range(4))
def test_every_what_if_is_what_another_simulator_says(seed):
    world = noisy(seed)
    result = ask(world.tables())
    ideals = {row.op_type: row.ideal_s * 1e9 for row in result.types.itertuples()}
    ideal = sum(oracle(world, ideals, lambda *_: False))

    def s(keep):
        return sum(oracle(world, ideals, keep)) / ideal

    assert result.t_ideal_s == pytest.approx(ideal / world.steps, rel=1e-12)
    assert result.s == pytest.approx(s(lambda *_: True), rel=1e-12)
    for d in range(world.dp):
        assert result.by_dp_rank[d] == pytest.approx(s(lambda dp, *_, d=d: dp == d), rel=1e-12)
    for p in range(world.stages):
        assert result.by_stage[p] == pytest.approx(s(lambda dp, stage, op, p=p: stage == p), rel=1e-12)
    for name in ("forward-compute", "backward-compute"):
        assert result.by_op_type[name] == pytest.approx(s(lambda dp, stage, op, n=name: op == n), rel=1e-12)


def test_sequences_that_are_not_recorded_follow_from_start_times():
    rows = noisy(1).rows()
    known = ask(MemoryTables({"pipeline": rows}))
    assert ask(MemoryTables({"pipeline": rows | {"seq": [None] * len(rows["step"])}})).s == pytest.approx(known.s)


def test_steps_are_replayed_in_parts_alike(monkeypatch):
    tables = noisy(2, steps=6).tables()
    whole = ask(tables)
    monkeypatch.setattr(slowdown, "PART_OPS", 1)
    parts = ask(tables)
    assert parts.to_dict() == whole.to_dict()
    assert parts.timeline.equals(whole.timeline)


def test_launch_delays_are_told_apart_from_slowness():
    rows = Pipelines(dp=1, stages=1, microbatches=2, steps=1, collectives=False).rows()
    order = np.argsort(rows["start_ns"])
    for place, at in enumerate(order):
        rows["start_ns"][at] += 10 * MS * place  # a gap of 10 ms before each but the first
    result = ask(MemoryTables({"pipeline": rows}))
    assert result.s == pytest.approx(1)
    assert result.launch_slowdown == pytest.approx((60 + 30) / 60)
    assert not result.validity["trusted"] and result.cause == "unknown"  # a third of the time is no operation's
    assert result.validity["replay_error"] == pytest.approx(0)


def test_computing_that_overlaps_with_sending_does_not_wait_for_it():
    """A rank computes for 30 ms twice on end; a send of 40 ms begins after the first and lies over the second."""
    names = ["forward-compute", "forward-send", "forward-compute", "forward-recv", "forward-compute"]
    stage, start, dur = [0, 0, 0, 1, 1], [0, 30, 30, 0, 70], [30, 40, 30, 70, 30]
    rows = {
        "step": [0] * 5,
        "dp_rank": [0] * 5,
        "stage": stage,
        "rank": stage,
        "op_type": names,
        "microbatch": [0, None, 1, None, 0],
        "seq": [0, 0, 1, 0, 0],
        "start_ns": [t * MS for t in start],
        "dur_ns": [t * MS for t in dur],
    }
    part = replays(MemoryTables({"pipeline": rows}))
    assert part.recorded()[0].tolist() == pytest.approx([0.1, 0.1])
    assert part.keeping([np.ones(5, bool)])[0, 0] == pytest.approx(0.1)
    edges = {(int(a), int(b)) for a, b in zip(part.edges.before, part.edges.after, strict=True)}
    names = [NAMES[t] for t in part.type]
    assert {(names[a], names[b]) for a, b in edges} == {
        ("forward-compute", "forward-pp-comm"),
        ("forward-compute", "forward-compute"),
        ("forward-pp-comm", "forward-compute"),
    }


def test_a_timeline_holds_the_step_asked_for():
    world = noisy(5)
    result = ask(world.tables(), step=1, dp_rank=2)
    assert (result.step, result.dp_rank) == (1, 2)
    measured = {(s, op, n): (start, end) for (d, s), ops in world.run(1).items() if d == 2 for op, n, start, end in ops}
    assert len(result.timeline) == len(measured)
    for row in result.timeline[result.timeline.op_type == "forward-compute"].itertuples():
        start, end = measured[row.stage, "forward-compute", row.microbatch]
        assert (row.start_s, row.dur_s, row.wait_s) == pytest.approx((start / 1e9, (end - start) / 1e9, 0))
        assert row.ideal_dur_s == pytest.approx(result.types.set_index("op_type").ideal_s["forward-compute"])
    ends = (result.timeline.ideal_start_s + result.timeline.ideal_dur_s).max()
    assert ends == pytest.approx(result.t_ideal_s)
    with pytest.raises(QuestionError, match="no step 77"):
        ask(world.tables(), step=77)
    with pytest.raises(QuestionError, match="no dp rank 9"):
        ask(world.tables(), dp_rank=9)


def test_a_run_without_a_trace_is_told_what_would_bring_one():
    with pytest.raises(QuestionError, match="no pipeline operations"):
        ask(MemoryTables({}))
    with pytest.raises(QuestionError, match="can be used"):
        ask(MemoryTables({"pipeline": {"step": [1], "op_type": ["forward-compute"]}}))


def test_a_step_that_no_part_of_a_trace_holds_is_refused():
    part = replays(Pipelines(dp=1, stages=2, microbatches=2).tables())
    with pytest.raises(IndexError, match="no part holds this step"):
        timeline([], 0, 0)
    with pytest.raises(IndexError, match="no part holds this step"):
        timeline([part], len(part.ops.steps), 0)


def test_what_the_question_offers_by_name_is_there():
    assert [name for name in slowdown.__all__ if not hasattr(slowdown, name)] == []
