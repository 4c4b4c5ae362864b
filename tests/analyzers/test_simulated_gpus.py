"""Jobs of GPUs of which the truth is known: who waited, for what, and what mending it would give back."""

import random

import pytest

from analyzers.ranks.waits import FIRST_STEP, LONE, UNEQUAL, waits
from app.questions import question
from app.questions.asking import ask
from tests.analyzers.simulated_gpus import Call, Job, entered, ingested, traced
from tests.collectors import kineto_traces as made

EQUAL = [Call(transfer_us=took) for took in (3000.0, 1500.0, 500.0)]


@pytest.fixture
def of(tmp_path):
    return lambda traces: ingested(tmp_path, traces)


def asked(run, name, **options):
    return ask(question(name), run, options, None)


def said(run, name):
    told = question(name).verdict(asked(run, name))
    return getattr(told, "whole", told)


def hidden(late_us):
    """The stream that computes is never idle; rank 1 enters an all-reduce beside it so much later, in every step."""
    rng, files = random.Random(4), {}
    for rank in range(4):
        events, number = [], 1
        for step in range(24):
            begun = 1000 + 3000 * step
            events.append(made.step(step + 3, begun, 3000))
            for n in range(10):
                events.append(made.launch(begun + 300 * n - 40 + 45 * (n == 0), 4, number))
                events.append(made.kernel("gemm_x", begun + 300 * n, 300, number))
                number += 1
            came = begun + 500 + late_us * (rank == 1) + rng.uniform(0, 20)
            events += [made.launch(came - 10, 4, number), entered("allreduce", came, begun + 1920, number, 4)]
            number += 1
        files[f"rank-{rank}.pt.trace.json"] = traced(rank, 4, events)
    return files


def test_a_rank_whose_lateness_is_hidden_behind_computing_is_not_accused(of):
    run = of(hidden(1000))
    found = asked(run, "stragglers")
    assert found.verdict == "none" and not found.cost_chip_seconds and found.gain is None
    assert asked(run, "overlap").to_dict()["totals"]["exposed_s"] == 0


def test_a_rank_whose_lateness_is_not_hidden_is(of):
    found = asked(of(Job(work=lambda rank, step, call: 2000.0 + 800 * (rank == 2)).traces()), "stragglers")
    assert found.verdict == "persistent" and found.ranks.iloc[0]["rank"] == "2"


def test_one_lost_event_makes_nobody_wait(of):
    """Nobody ever waits; of every third step rank 1's first all-reduce was lost: the rest would be taken for others."""
    job = Job(
        calls=EQUAL, scatter_us=0, dropped=lambda rank, step, call: rank == 1 and step % 3 == 0 < step and call == 0
    )
    run = of(job.traces())
    rows = waits(run.tables).rows
    assert (rows.loc[(rows["step"] - 3) % 3 == 0, "reason"].isin((FIRST_STEP, UNEQUAL, LONE))).all()
    assert rows["wait_ns"].sum() < 1e-3 * (rows["end_ns"] - rows["start_ns"]).sum()
    assert asked(run, "stragglers").verdict != "persistent"


def test_without_marks_sequences_of_unequal_length_are_not_compared(of):
    late = Job(
        calls=EQUAL, scatter_us=0, marked=False, dropped=lambda rank, step, call: (rank, step, call) == (1, 0, 0)
    )
    rows = waits(of(late.traces()).tables).rows
    assert not rows["matched"].any() and rows["wait_ns"].sum() == 0
    assert (rows["unknown_ns"] == rows["end_ns"] - rows["start_ns"]).all()


def test_a_step_that_is_the_first_of_one_capture_is_compared_on_no_rank(of):
    """Rank 1 begins within step 5, after its first collective: what is left of it is not what others have."""
    job = Job(ranks=2, steps=5, calls=EQUAL, scatter_us=0, profiled={0: range(3), 1: range(2, 5)})
    job.dropped = lambda rank, step, call: (rank, step, call) == (1, 2, 0)
    rows = waits(of(job.traces()).tables).rows
    assert not rows["matched"].any() and rows["wait_ns"].sum() == 0


def test_receives_that_wait_for_another_stage_are_not_measured_communication(of):
    """Each of two stages computes for 3 ms while the other's receive waits; a transfer takes 50 µs."""
    files = {}
    for rank in range(2):
        events, number = [], 1
        for step in range(24):
            begun = 1000 + 6100 * step
            events.append(made.step(step + 3, begun, 6100))
            works, waiting = ((0, 3000), (3001, 6095)) if rank == 0 else ((3051, 6050), (5, 3045))
            for call, (start, end) in enumerate((works, waiting)):
                events.append(made.launch(begun + start - 3, 2, number))
                kernel = entered("recv", begun + start, begun + end, number, 2)
                events.append(kernel if call else made.kernel("gemm", begun + start, end - start, number))
                number += 1
        files[f"rank-{rank}.pt.trace.json"] = traced(rank, 2, events)
    run = of(files)
    totals = asked(run, "overlap").to_dict()["totals"]
    assert totals["exposed_communication_s"] == 0 and totals["communication_or_wait_s"] > 0.1
    assert "not known which" in said(run, "overlap")


def test_why_waits_are_not_known_is_not_put_on_first_steps(of):
    """Rank 1's profile ends early: of what came after, nobody knows when it was there."""
    job = Job(ranks=2, steps=12, profiled={1: range(4)})
    job.work = lambda rank, step, call: 6000.0 if rank == 1 and step > 3 else 2000.0
    text = said(of(job.traces()), "collectives")
    assert "where it is not known when the other ranks came" in text and "first steps" not in text


def test_data_moved_for_as_long_as_is_known(of):
    calls = [Call(transfer_us=300.0), Call("broadcast", 3000.0)]
    job = Job(ranks=2, steps=12, calls=calls, work=lambda rank, step, call: 2500.0 if (call, rank) == (0, 1) else 300.0)
    run = of(job.traces())
    totals = asked(run, "collectives").to_dict()["totals"]
    moved = totals["transfer_s"] - totals["unknown_s"]
    assert moved == pytest.approx(2 * 11 * 300e-6, rel=0.1)  # the first step of a capture is not compared
    assert f"Data moved for {moved:.3g}"[:22] in said(run, "collectives")


def test_a_job_bound_by_its_device_is_not_bound_by_its_host(tmp_path):
    """The host runs 1 ms ahead; each all-reduce, on a stream of its own, begins with the end of what it adds up."""
    events, number, at = [], 1, 5000.0
    for step in range(4):
        begun, ends = at, 0.0
        for _ in range(5):
            for _ in range(20):
                events += [made.launch(at - 1000, 4, number), made.kernel("gemm", at, 200, number)]
                number, at = number + 1, at + 201
            start = max(at + 0.5, ends + 1)
            events.append(made.launch(at - 1181, 5, number))
            events.append(entered("allreduce", start, start + 1500, number, 2))
            number, ends = number + 1, start + 1500
        at = ends + 1.5
        for n in range(5):
            events.append(made.launch(begun + 19_100 + 10 * n, 4, number))
            events.append(made.kernel("adam", at, 100, number))
            number, at = number + 1, at + 101
        events.append(made.step(step + 1, begun - 1001, at - begun))
    run = ingested(tmp_path, {"rank-0.pt.trace.json": traced(0, 2, events)})
    path = asked(run, "critical_path").to_dict()["path"]
    assert path["computing_share"] > 0.9 and path["host_code_share"] < 0.01
