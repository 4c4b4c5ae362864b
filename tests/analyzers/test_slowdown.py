"""What-if slowdown: pipelines whose truth is known by construction or by hand."""

import json
import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.ranks import slowdown
from analyzers.ranks.slowdown.ops import load
from analyzers.ranks.slowdown.times import NAMES, TYPES, Replays, ideal_durations
from errors import QuestionError
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.analyzers.pipelines import MS, Pipelines


def ask(tables, facts=None, **options):
    return slowdown.analyze(tables, facts_of(facts or {}), parse_options(slowdown.OPTIONS, options))


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


def noisy(seed, dp=3, stages=3, microbatches=5, steps=3):
    rng = np.random.default_rng(seed)
    f, b = (rng.integers(1 * MS, 30 * MS, (steps, dp, stages, microbatches)) for _ in range(2))
    return Pipelines(
        dp=dp,
        stages=stages,
        microbatches=microbatches,
        steps=steps,
        forward=lambda *at: int(f[at]),
        backward=lambda *at: int(b[at]),
    )


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


def test_sends_that_block_each_other_in_a_circle_leave_their_step_out():
    rows = Pipelines(steps=3).rows()
    at = [
        i
        for i, (step, dp, op, seq) in enumerate(
            zip(rows["step"], rows["dp_rank"], rows["op_type"], rows["seq"], strict=True)
        )
        if step == 1 and dp == 0 and op == "forward-recv" and seq in (0, 3)
    ]
    rows["seq"][at[0]], rows["seq"][at[1]] = 3, 0
    result = ask(MemoryTables({"pipeline": rows}))
    assert result.validity["steps_left_out"] == 1 and result.per_step["step"].tolist() == [0, 2]
    assert result.s == pytest.approx(1)
    with pytest.raises(QuestionError, match="circle"):
        ask(
            MemoryTables(
                {"pipeline": {k: [v[i] for i in range(len(v)) if rows["step"][i] == 1] for k, v in rows.items()}}
            )
        )


WORLD = noisy(11)
ROWS = WORLD.rows()
TRUTH = ask(MemoryTables({"pipeline": ROWS}))


@settings(deadline=None, max_examples=30)
@given(st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rng):
    order = list(range(len(ROWS["step"])))
    rng.shuffle(order)
    shuffled = ask(MemoryTables({"pipeline": {name: [values[i] for i in order] for name, values in ROWS.items()}}))
    assert shuffled.s == pytest.approx(TRUTH.s, rel=1e-12)
    assert shuffled.by_stage == pytest.approx(TRUTH.by_stage) and shuffled.by_op_type == pytest.approx(TRUTH.by_op_type)


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 1000), st.integers(-(10**18), 10**18))
def test_scaling_or_shifting_all_times_changes_no_ratio(factor, shift):
    rows = ROWS | {
        "start_ns": [t * factor + shift for t in ROWS["start_ns"]],
        "dur_ns": [t * factor for t in ROWS["dur_ns"]],
    }
    scaled = ask(MemoryTables({"pipeline": rows}))
    assert scaled.s == pytest.approx(TRUTH.s, rel=1e-9) and scaled.cause == TRUTH.cause
    assert scaled.t_s == pytest.approx(TRUTH.t_s * factor)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_uneven_replicas_and_steps_never_speed_a_job_up(data):
    """Each replica has a pace of its own in each step: the slowest decides, so S is at least 1.

    (Uneven stages and micro-batches may hide in gaps of the schedule, and then S may be less, see below.)
    """
    dp, stages, m = (data.draw(st.integers(1, n)) for n in (3, 4, 5))
    pace = st.lists(st.integers(1, 40), min_size=dp * 2, max_size=dp * 2)
    f, b = data.draw(pace), data.draw(pace)
    world = Pipelines(
        dp=dp,
        stages=stages,
        microbatches=m,
        steps=2,
        forward=lambda n, d, s, k: f[2 * d + n] * MS,
        backward=lambda n, d, s, k: b[2 * d + n] * MS,
    )
    result = ask(world.tables())
    assert result.s >= 1 - 1e-9
    assert 0 <= result.waste < 1 and result.validity["replay_error"] < 1e-9
    json.dumps(result.to_dict(), allow_nan=False)


def test_what_the_schedule_hides_can_make_it_faster_than_even_durations():
    """Two stages, two micro-batches, forward only: a, then b beside c, then d. With a = d = 0 the others take one turn,
    while even durations would take three halves of one."""
    name, send = "forward-compute", ("forward-send", "forward-recv")
    ops = [
        (0, name, 0, 0, 0),
        (0, send[0], 0, 0, 0),
        (0, name, 1, 0, 30),
        (0, send[0], 1, 30, 0),
        (1, send[1], 0, 0, 0),
        (1, name, 0, 0, 30),
        (1, send[1], 1, 30, 0),
        (1, name, 1, 30, 0),
    ]
    rows = {
        "stage": [o[0] for o in ops],
        "op_type": [o[1] for o in ops],
        "seq": [o[2] for o in ops],
        "start_ns": [o[3] * MS + place for place, o in enumerate(ops)],
        "dur_ns": [o[4] * MS for o in ops],
        "step": [0] * 8,
        "dp_rank": [0] * 8,
    }
    result = ask(MemoryTables({"pipeline": rows}))
    assert result.s < 1 and result.waste == 0 and result.cost_chip_seconds == 0 and result.cause == "none"


@settings(deadline=None, max_examples=80)
@given(st.data())
def test_whatever_is_missing_is_counted_and_never_fatal(data):
    n = len(ROWS["step"])
    kept = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=n, unique=True))
    rows = {name: [values[i] for i in kept] for name, values in ROWS.items()}
    lost = data.draw(st.sampled_from(["", "dp_rank", "start_ns", "dur_ns", "seq", "rank", "op_type", "step"]))
    if lost:
        rows[lost] = [None if data.draw(st.booleans()) else v for v in rows[lost]]
    try:
        result = ask(MemoryTables({"pipeline": rows}))
    except QuestionError:
        return
    json.dumps(result.to_dict(), allow_nan=False)
    assert result.s > 0 and 0 <= result.waste <= 1


def test_unmatched_sends_are_cut_and_counted():
    there = [place != (1, 2) for place in zip(ROWS["dp_rank"], ROWS["stage"], strict=True)]
    rows = {name: [v for v, kept in zip(values, there, strict=True) if kept] for name, values in ROWS.items()}
    result = ask(MemoryTables({"pipeline": rows}))
    per_link = 2 * WORLD.microbatches * WORLD.steps  # sends and receives that stage 1 had with stage 2
    assert result.validity["lone_sends_and_receives"] == per_link
    assert any(f"{per_link} sends and receives have no peer" in note for note in result.notes)
    assert result.validity["replay_error"] < 1e-9


def test_a_file_given_twice_counts_once():
    result = ask(MemoryTables({"pipeline": {name: values * 2 for name, values in ROWS.items()}}))
    assert result.s == pytest.approx(TRUTH.s)
    assert result.validity["dropped"] == {"repeated": len(ROWS["step"])}


def test_a_large_trace_is_answered():
    rows = Pipelines(dp=8, stages=8, microbatches=16, steps=1).rows()
    n, steps = len(rows["step"]), 60
    names = np.array(rows.pop("op_type"))
    columns = {
        name: np.tile(np.array(values, dtype=float).astype(np.int64), steps)
        for name, values in rows.items()
        if name not in ("step", "microbatch")
    }
    columns["step"] = np.repeat(np.arange(steps), n)
    tables = MemoryTables({"pipeline": columns | {"op_type": pa.array(np.tile(names, steps))}})
    result = ask(tables)
    assert result.s == pytest.approx(1) and tables.rows("pipeline") > 300_000


def test_operations_without_length_are_refused():
    rows = {"step": [0], "dp_rank": [0], "stage": [0], "op_type": ["gc"], "start_ns": [0], "dur_ns": [0]}
    with pytest.raises(QuestionError, match="takes any time"):
        ask(MemoryTables({"pipeline": rows}))
