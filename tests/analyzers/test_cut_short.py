"""Attempts of which a scheduler tells when it took the machines back, and that the job was not done."""

import json

import pytest

from analyzers.lost import checkpoints, interruptions
from analyzers.lost.goodput import analyze as goodput
from analyzers.time.job_past import job_past
from errors.options import parse_options
from runs.run import FactValue
from runs.tables import MemoryTables

S = 10**9
EPOCH = 1_772_582_400 * S


def ns(seconds):
    return [None if at is None else EPOCH + round(at * S) for at in seconds]


def tables(jobs, steps=(), others=(), evidence=()):
    """`jobs`: (from, to, whether cut short) in s, as a scheduler tells; `steps`: (attempt, number, from, lasts);
    `others`: starts that a log tells of; `evidence`: (time, cause)."""
    told = [
        (start, end, {"scheduler": "slurm", **({"outcome": "interrupted"} if cut else {})}, "sacct.txt")
        for start, end, cut in jobs
    ]
    told += [(start, None, None, "train.log") for start in others]
    attempt, number, begun, took = zip(*steps, strict=True) if steps else ([],) * 4
    return MemoryTables(
        {
            "lifecycle": {
                "kind": ["job"] * len(told),
                "start_ns": ns(t[0] for t in told),
                "end_ns": ns(t[1] for t in told),
                "detail": [t[2] and json.dumps(t[2]) for t in told],
                "source": [t[3] for t in told],
            },
            "steps": {
                "attempt": list(attempt),
                "step": list(number),
                "start_ns": ns(begun),
                "dur_ns": [round(s * S) for s in took],
                "source": ["train.log"] * len(steps),
                "format": ["torchtitan"] * len(steps),
            },
            "evidence": {
                "ts_ns": ns(at for at, _ in evidence),
                "attempt": [None] * len(evidence),
                "cause": [cause for _, cause in evidence],
                "severity": ["error"] * len(evidence),
                "text": ["as Slurm says"] * len(evidence),
                "source": ["sacct.txt"] * len(evidence),
                "order": list(range(len(evidence))),
            },
        }
    )


CHIPS = {"chips": FactValue(8, "measured", "sacct.txt")}
TAKEN = [(0, n, 100 + 10 * n, 10) for n in range(30)] + [(1, 20 + n, 2050 + 10 * n, 10) for n in range(30)]
JOBS = [(0, 1000, True), (2000, 2400, True)]  # steps until 400 of 1000, and until 2350 of 2400
WHY = [(1000, "host"), (2400, "time_limit")]


def ask(module, *args, **kwargs):
    return module.analyze(tables(*args, **kwargs), CHIPS, parse_options(module.OPTIONS, {}))


def test_each_end_that_cut_an_attempt_short_is_an_interruption():
    result = ask(interruptions, JOBS, TAKEN, evidence=WHY)
    assert (result.count, list(result.rows["kind"]), list(result.rows["cause"])) == (
        2,
        ["restart", "final"],
        ["host", "time_limit"],
    )
    assert result.held_s == 1400  # from 1000 to 2000 nothing was held
    first = result.rows.iloc[0]
    assert (first["down_s"], first["startup_s"], first["lost_steps"]) == (600, 50, 10)
    assert list(result.attempts["finished"]) == [False, False]


def test_the_time_between_is_neither_held_nor_lost():
    result = goodput(tables(JOBS, TAKEN), CHIPS, {})
    assert result.total_s == 1400 and result.productive_s == 500  # of 600 s in steps ten were taken again
    assert result.badput_s["infrastructure_recovery_from_disruption"] == 600
    assert any("held no chips" in note for note in result.notes)
    assert not any("no end recorded" in note for note in result.notes)


def test_where_no_step_was_read_what_an_interruption_cost_is_not_known():
    result = ask(interruptions, JOBS, evidence=WHY)
    assert result.count == 2 and result.rows["lost_s"].isna().all()
    assert ask(checkpoints, JOBS).restarts_s == 0


@pytest.mark.parametrize("jobs", [[(0, 0, True)], [(0, 0, True), (60, 60, True)]])
def test_an_attempt_that_failed_as_it_was_started_is_told(jobs):
    """As accounts have it of a command that is not found: it began and ended in the same second."""
    result = ask(interruptions, jobs, evidence=[(end, "process_exit") for _, end, _ in jobs])
    assert list(result.rows["cause"]) == ["process_exit"] * len(jobs) and result.rows["lost_s"].isna().all()
    assert ask(checkpoints, jobs).kept_s == 0
    assert goodput(tables(jobs), CHIPS, {}).total_s == pytest.approx(jobs[-1][0], abs=1e-8)


def test_of_a_job_of_which_its_start_alone_is_known_no_wait_is_told():
    notes = goodput(tables([], others=[0]), CHIPS, {}).notes
    assert any("told of up to its last sign of life" in note for note in notes)
    assert not any("waited" in note for note in notes)


def test_a_job_that_came_to_its_end_by_itself_was_not_interrupted():
    result = ask(interruptions, [(0, 1000, True), (2000, 2400, False)], TAKEN)
    assert (result.count, list(result.attempts["finished"])) == (1, [False, True])


@pytest.mark.parametrize("late", [0, 60, 900], ids=["at once", "soon", "after the image was fetched"])
def test_a_log_that_begins_while_the_scheduler_holds_the_machines_is_of_that_start(late):
    taken = [(0, n, 950 + 10 * n, 10) for n in range(5)]
    _, days = job_past(tables([(0, 1000, False)], taken, others=[late]), CHIPS)
    assert days is not None and days.attempts.start.tolist() == ns([0])


def test_a_log_that_begins_twice_while_the_machines_are_held_tells_of_a_restart():
    taken = [(0, n, 950 + 10 * n, 10) for n in range(5)]
    _, days = job_past(tables([(0, 1000, False)], taken, others=[20, 500]), CHIPS)
    assert days is not None and days.attempts.start.tolist() == ns([0, 500])


def moved(jobs, hours):
    return [(start + 3600 * hours, None if end is None else end + 3600 * hours, cut) for start, end, cut in jobs]


HOURS = [(0, 3600, True), (7200, 10800, True)]
FILLED = [(0, n, 300 + 100 * n, 100) for n in range(30)] + [(1, 20 + n, 7300 + 100 * n, 100) for n in range(30)]


@pytest.mark.parametrize("hours", [-8, -1, 2, 5.5, 5.75])
def test_an_account_in_another_time_zone_is_moved_to_where_each_step_was_taken(hours):
    evidence = [(3600 * (1 + hours), "host"), (3600 * (3 + hours), "time_limit")]
    result = ask(interruptions, moved(HOURS, hours), FILLED, evidence=evidence)
    assert (result.count, list(result.rows["cause"]), result.held_s) == (2, ["host", "time_limit"], 7200)
    later = "earlier" if hours > 0 else "later"
    assert any(f"sacct.txt: its times are taken as {abs(hours):g} h {later}" in note for note in result.notes)


def test_an_account_of_another_job_is_not_moved():
    """Ten hours of which the steps would be ten minutes; and one that fits no move at all."""
    for jobs in ([(5 * 3600, 15 * 3600, True)], [(30 * 3600, 30 * 3600 + 900, True)], moved(JOBS, 0.4), moved(JOBS, 8)):
        past, _ = job_past(tables(jobs, TAKEN), CHIPS)
        assert not past.shifts


def test_a_step_that_a_log_counts_over_a_restart_began_after_it():
    """The log goes on without a word of the restart: its first step after it seems to last from the one before."""
    taken = [(0, n, 100 + 10 * n, 10) for n in range(30)] + [(0, 30, 400, 1660)]
    taken += [(0, 31 + n, 2060 + 10 * n, 10) for n in range(20)]
    past, days = job_past(tables(JOBS, taken), CHIPS)
    row = past.rows[past.rows["step"] == 30].iloc[0]
    assert (row["start_ns"], row["dur_ns"], row["attempt"]) == (ns([2000])[0], 60 * S, 1)
    assert list(past.rows["attempt"].value_counts()) == [30, 21] and days is not None


def test_steps_that_were_taken_a_little_after_the_end_are_no_sign_that_the_machines_were_kept():
    """Slurm enters the end, asks the job to stop, and kills it half a minute later."""
    taken = [(0, n, 725 + 10 * n, 10) for n in range(30)] + TAKEN[30:]
    result = ask(interruptions, JOBS, taken, evidence=WHY)
    assert result.held_s == 1025 + 400 and list(result.rows["cause"]) == ["host", "time_limit"]
    assert result.rows["down_s"].iloc[0] == 0
    taken = [(0, n, 725 + 10 * n, 10) for n in range(30)] + [(0, 30, 1025, 1035)]  # without a word of the restart
    taken += [(0, 31 + n, 2060 + 10 * n, 10) for n in range(20)]
    past, days = job_past(tables(JOBS, taken), CHIPS)
    row = past.rows[past.rows["step"] == 30].iloc[0]
    assert (row["start_ns"], row["dur_ns"], row["attempt"]) == (ns([2000])[0], 60 * S, 1)
    quick = [(0, 1000, True), (1010, 2400, True)]  # given again at once: what begins then began then
    past, _ = job_past(tables(quick, [(0, n, 700 + 10 * n, 10) for n in range(30)] + [(0, 30, 1050, 10)]), CHIPS)
    assert past.rows["start_ns"].iloc[-1] == ns([1050])[0]
