"""Traces of pipelines in any order and unit, uneven, incomplete, given twice, large."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from errors import QuestionError
from runs.tables import MemoryTables
from tests.analyzers.asked_pipelines import ask, noisy
from tests.analyzers.pipelines import MS, Pipelines


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
