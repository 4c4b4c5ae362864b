"""Logs of hosts by other clocks, rotated or cut, of another job, newest first; and slow steps that did not hang."""

import random

import numpy as np
import pytest

from analyzers.lost import goodput, interruptions
from analyzers.time import ledger
from analyzers.time.history import history
from analyzers.time.source_clocks import apart
from app.questions.goodput.words import verdict as goodput_verdict
from app.questions.ledger.words import verdict as ledger_verdict
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.analyzers.told_jobs import EPOCH, Row, S, Take, log, renumbered, tables

WEST_S = -7 * 3600.0


def taken(*attempts: tuple[int, int, float, float], dur_s: float = 5.0) -> list[Take]:
    """Takes of attempts, each (first step, how many, seconds before it, seconds by which its first step is longer)."""
    out: list[Take] = []
    now = 0.0
    for k, (first, count, pause_s, compile_s) in enumerate(attempts):
        now += pause_s
        for n in range(count):
            took = dur_s + (compile_s if n == 0 else 0.0)
            out.append(Take(k, first + n, now, took))
            now += took
    return out


def parts(takes: list[Take], name: str, cuts: list[int], **how: float) -> list[Row]:
    """A log that was rotated at these places."""
    ends = [*cuts, len(takes)]
    begins = [0, *cuts]
    return [
        r
        for k, (a, b) in enumerate(zip(begins, ends, strict=True))
        for r in log(random.Random(k), takes[a:b], f"{name}.{len(cuts) - k}", jitter_s=0.01, **how)
    ]


def told(rows: list[Row]) -> tuple[int, int, int, float]:
    """Steps taken, kept, interruptions, and seconds held of a chip."""
    here = tables(rows)
    past = history(here, {}).rows
    asked = interruptions.analyze(here, facts_of({"chips": 1}), {})
    held_s = ledger.analyze(here, facts_of({"chips": 1}), {}).ledger.chip_seconds
    return len(past), int(past["kept"].sum()), asked.count, held_s


JOB = taken((0, 60, 0, 0), (30, 60, 90, 0))
TRUTH = (120, 90, 1, pytest.approx(690, abs=6))


@pytest.mark.parametrize("clock_s", [WEST_S, 40.0, -90.0])
def test_a_rotated_log_by_another_clock_is_of_the_same_attempts(clock_s):
    rows = parts(JOB, "b", [13, 58]) + parts(JOB, "a", [25, 80], clock_s=clock_s) + parts(JOB, "c", [40, 100])
    assert told(rows) == TRUTH


def test_the_longest_log_s_clock_is_not_the_job_s_where_most_hosts_go_by_another():
    first, second = JOB[:60], JOB[60:]
    rows = log(random.Random(1), first, "a.log", clock_s=WEST_S) + log(
        random.Random(1), second, "b.log", clock_s=WEST_S
    )
    for k in range(2):  # files of the others begin a little later and are shorter
        rows += log(random.Random(k), first[5:], f"c{k}.log") + log(random.Random(k), second, f"d{k}.log")
    assert told(rows) == TRUTH


def test_of_two_hosts_all_attempts_go_by_the_clock_of_the_same_one():
    first, second = JOB[:60], JOB[60:]
    rows = log(random.Random(1), first, "a.log", clock_s=WEST_S) + log(
        random.Random(1), second[1:], "b.log", clock_s=WEST_S
    )
    rows += log(random.Random(2), first[1:], "c.log") + log(random.Random(2), second, "d.log")
    assert told(rows) == TRUTH


def test_a_short_part_is_compared_with_every_log_whose_clock_is_known():
    first, second = JOB[:60], JOB[60:]
    rows = log(random.Random(1), first[3:] + second, "a.log", clock_s=WEST_S)  # the longest; it lacks the first steps
    rows += log(random.Random(2), first[:4], "a.log.1", clock_s=WEST_S)[:3]
    rows += log(random.Random(3), first, "b.log") + log(random.Random(3), second, "c.log")
    rows += log(random.Random(4), first, "d.log") + log(random.Random(4), second, "e.log")
    assert told(rows) == TRUTH


def test_logs_whose_times_overlap_by_less_than_half_are_still_of_one_attempt():
    takes = taken((0, 100, 0, 30), dur_s=0.3)
    rows = log(random.Random(1), takes, "a.log") + log(random.Random(2), takes[:66], "b.log", clock_s=40)
    assert told(rows) == (100, 100, 0, pytest.approx(60, abs=1))


def test_a_rerun_that_begins_as_the_first_run_ends_is_no_other_clock():
    first, again = taken((0, 20, 0, 0)), taken((0, 20, 99, 0))
    assert apart(*(column(first)), *(column(again)), 5 * 10**9) is None


def column(takes: list[Take]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([t.step for t in takes]), np.array([round(t.start_s * 1e9) for t in takes])


def test_a_clock_that_is_off_by_as_much_as_a_restart_took_is_another_clock():
    takes = taken((0, 60, 0, 0), (55, 60, 90, 0), dur_s=0.3)
    rows = log(random.Random(1), takes, "a.log") + log(random.Random(2), takes, "b.log", clock_s=-90)
    assert told(rows) == (120, 115, 1, pytest.approx(126, abs=3))


def test_another_job_s_log_is_left_out_and_said():
    one, other = taken((0, 100, 0, 0)), taken((0, 80, 37, 0), dur_s=7)
    rows = log(random.Random(1), one, "a.log") + log(random.Random(2), other, "b.log")
    assert told(rows) == (100, 100, 0, pytest.approx(500, abs=6))
    [note] = history(tables(rows), {}).notes
    assert note.startswith("b.log: left out") and "another job" in note


def test_nor_does_what_it_records_count():
    one, other = taken((0, 100, 0, 0)), taken((0, 80, 37, 0), dur_s=7)
    rows = log(random.Random(1), one, "a.log") + log(random.Random(2), other, "b.log")
    start = [EPOCH + t * S for t in (200, 220, 1000)]
    life = {
        "kind": ["checkpoint_save", "checkpoint_save", "job"],
        "start_ns": start,
        "end_ns": [start[0] + 5 * S, start[1] + 30 * S, start[2] + 500 * S],
        "source": ["a.log", "b.log", "b.log"],
    }
    here = MemoryTables({"steps": tables(rows).arrow("steps").to_pydict(), "lifecycle": life})
    result = goodput.analyze(here, facts_of({}), {"rules": "exact"})
    assert result.badput_s["unproductive_checkpoint_save_time"] == pytest.approx(5)
    assert result.disruptions == 0 and result.total_s == pytest.approx(500, abs=6)


def test_nor_does_its_failure_tell_why_the_job_stopped():
    one, other = taken((0, 60, 0, 0), (40, 100, 300, 0)), taken((0, 40, 10, 0), dur_s=7)
    rows = log(random.Random(1), one, "a.log") + log(random.Random(2), other, "b.log")
    for source, cause in (("b.log", "unknown"), ("a.log", "software"), ("dmesg", "software")):
        said = {"ts_ns": [EPOCH + 310 * S], "cause": ["software"], "text": ["RuntimeError"], "source": [source]}
        here = MemoryTables(
            {"steps": tables(rows).arrow("steps").to_pydict(), "evidence": said | {"severity": ["error"]}}
        )
        assert interruptions.analyze(here, facts_of({"chips": 8}), {}).rows["cause"].tolist() == [cause], source


def test_a_log_that_dates_nothing_is_the_jobs_own_beside_metrics_that_are_dated():
    """Its steps are those that the metrics tell; what it says of the failure, they do not."""
    one = taken((0, 60, 0, 0), (40, 100, 300, 0))
    steps = tables(log(random.Random(1), one, "run.wandb")).arrow("steps").to_pydict()
    count = len(steps["step"])
    undated = {**steps, "start_ns": [None] * count, "logged_ns": [None] * count, "source": ["train.log"] * count}
    both = {name: [*steps[name], *undated[name]] for name in steps}
    said = {"step": [59], "cause": ["software"], "text": ["RuntimeError"], "source": ["train.log"]}
    here = MemoryTables({"steps": both, "evidence": said | {"severity": ["error"], "attempt": [0]}})
    result = interruptions.analyze(here, facts_of({"chips": 8}), {})
    assert history(here, facts_of({})).strangers == () and result.rows["cause"].tolist() == ["software"]


def test_a_log_whose_newest_line_is_first_tells_of_its_restarts():
    rows = renumbered(log(random.Random(1), JOB, "export.txt")[::-1])
    falls = [Row(r.take, r.host, r.source, r.order, n, r.start_s, r.dur_s) for n, r in enumerate(rows)]
    for attempts in (rows, falls, [Row(r.take, r.host, r.source, r.order, 0, r.start_s, r.dur_s) for r in rows]):
        assert told(attempts) == TRUTH


def test_two_hosts_logs_one_behind_the_other_in_one_file_by_clocks_hours_apart():
    rows = log(random.Random(1), JOB, "all.log") + log(random.Random(2), JOB, "all.log", clock_s=WEST_S)
    assert told(renumbered(rows)) == TRUTH
    again = taken((0, 60, 0, 0), (30, 60, 90, 0), (10, 80, 90, 0))  # restarts alone are restarts
    assert told(log(random.Random(1), again, "all.log")) == (200, 10 + 80, 2, pytest.approx(1180, abs=6))


def test_steps_that_lack_between_two_logs_without_times_are_no_interruption():
    takes = taken((0, 100, 0, 0))
    rows = log(random.Random(1), takes[:50], "a.log", timed=False) + log(
        random.Random(1), takes[60:], "b.log", timed=False
    )
    assert interruptions.analyze(tables(rows), facts_of({"chips": 1}), {}).count == 0


def test_a_slow_step_after_a_pause_compiles_and_did_not_hang():
    takes = taken((0, 60, 0, 30), (60, 60, 300, 700))
    one = [Take(0, t.step, t.start_s, t.dur_s) for t in takes]  # nothing says that the program began anew
    here = tables(log(random.Random(1), one, "a.log"))
    book = ledger.analyze(here, facts_of({"chips": 1}), {}).ledger
    assert book.amount("hang") == 0
    assert book.amount("program_startup") == pytest.approx(730, rel=0.01)
    assert book.amount("productive") == pytest.approx(600, rel=0.01)
    assert interruptions.analyze(here, facts_of({"chips": 1}), {}).count == 0


def test_what_starting_up_took_is_found_where_it_is_spread_over_a_mean():
    """A line every ten steps of 5 s; the first of each of two attempts took a minute longer."""
    takes = taken((0, 100, 0, 60), (100, 100, 300, 60))
    means = []
    for n, take in enumerate(takes):
        ten = takes[n - n % 10 :][:10]
        mean = sum(t.dur_s for t in ten) / 10
        means.append(Take(take.attempt, take.step, ten[0].start_s + n % 10 * mean, mean))
    rows = log(random.Random(1), means, "a.log")
    rows = [Row(r.take, r.host, r.source, r.order, r.attempt, r.take.start_s, r.take.dur_s) for r in rows]
    facts = facts_of({"chips": 1, "steps_averaged_over": 10})
    book = ledger.analyze(tables(rows, "megatron"), facts, {}).ledger
    assert book.amount("program_startup") == pytest.approx(120, abs=1)
    assert book.amount("productive") == pytest.approx(1000, abs=1)
    short = ledger.analyze(tables(rows[:20], "megatron"), facts, {}).ledger  # one other mean tells too little
    assert short.amount("program_startup") == pytest.approx(6, abs=1)


def test_a_step_that_lasts_without_a_pause_before_it_hung():
    takes = taken((0, 60, 0, 30), (60, 60, 0, 700))
    here = tables(log(random.Random(1), [Take(0, t.step, t.start_s, t.dur_s) for t in takes], "a.log"))
    assert ledger.analyze(here, facts_of({"chips": 1}), {}).ledger.amount("hang") == pytest.approx(700, rel=0.01)


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        ({}, "no step was read"),
        (
            {"capture": [0] * 3, "host": ["h"] * 3, "start_ns": [EPOCH + n * S for n in range(3)]},
            "only a profile shows steps, 3 of them",
        ),
        ({"source": ["a.log"] * 3, "order": [0, 1, 2]}, "the steps that were read carry no times of day"),
    ],
)
def test_why_no_share_of_the_time_is_told_is_what_the_inputs_lack(seen, why):
    here = {"lifecycle": {"kind": ["job"], "start_ns": [EPOCH], "end_ns": [EPOCH + 1000 * S]}}
    if seen:
        here["steps"] = {"step": [5, 6, 7], "dur_ns": [S] * 3, **seen}
    book = ledger.analyze(MemoryTables(here), facts_of({"chips": 1}), {})
    share = goodput.analyze(MemoryTables(here), facts_of({"chips": 1}), {})
    for said in (ledger_verdict(book), goodput_verdict(share)):
        assert f"cannot be told: {why}." in said
    for note in (book.notes, share.notes):
        assert any(n.startswith(f"{why[0].upper()}{why[1:]}: ") for n in note)
        assert not any("step lines with dates" in n for n in note)


def test_a_step_that_was_hardly_timed_is_one_step_of_all_hosts_that_share_a_log():
    """A program that runs ahead of its device prints a step as 0.001 s, each host a little later than the one before:
    of four hosts, none named, it was told to have been taken again, and those after it."""
    lines = [
        (40.0 + 2 * n + late, n, 0.001 * (host + 1) if n == 2 else 2.0 + 0.001 * host)
        for n in range(40)
        for host, late in enumerate((0.000, 0.004, 0.009, 0.017)[:: 1 if n % 2 else -1])
    ]
    lines.sort()
    columns = {
        "step": [n for _, n, _ in lines],
        "start_ns": [EPOCH + round((at - took) * S) for at, _, took in lines],
        "dur_ns": [round(took * S) for *_, took in lines],
        "attempt": [0] * len(lines),
        "order": list(range(len(lines))),
        "source": ["all.log"] * len(lines),
        "format": ["maxtext"] * len(lines),
    }
    rows = history(MemoryTables({"steps": columns}), {}).rows
    assert rows["step"].tolist() == list(range(40))
    assert rows["kept"].all() and rows["first"].sum() == 1


def test_an_attempt_that_restores_before_its_first_step_begins_with_that():
    """A minute and a half to be back, of which the last half minute restores."""
    here = tables(parts(JOB, "a.log", []))
    life = {"kind": ["checkpoint_restore"], "start_ns": [EPOCH + 360 * S], "end_ns": [EPOCH + 390 * S]}
    here = MemoryTables({"steps": here.arrow("steps").to_pydict(), "lifecycle": {**life, "source": ["a.log"]}})
    accounts = ledger.analyze(here, facts_of({"chips": 1}), {}).ledger
    assert accounts.amount("infrastructure_recovery") == pytest.approx(60, abs=1)
    assert accounts.amount("checkpoint_restore") == pytest.approx(30, abs=1)
    assert interruptions.analyze(here, facts_of({"chips": 1}), {}).count == 1
