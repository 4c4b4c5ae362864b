"""Goodput entries beside the step lines of the same job, of which one may end before the other, or of another job."""

import numpy as np
import pytest

from analyzers.lost import goodput, interruptions
from analyzers.time.history import history
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.analyzers.load_tests import EPOCH_NS

S = 10**9
NUMBERS = np.concatenate((np.arange(60), np.arange(40, 100)))  # stopped after step 59, begun again with 40
AT = np.concatenate((100 + 20 * np.arange(60), 2000 + 20 * np.arange(60)))  # seconds


def rows(numbers, at, source: str, took=None) -> list[dict]:
    told = enumerate(zip(numbers.tolist(), at.tolist(), strict=True))
    return [
        {
            "attempt": int(s >= 2000),
            "step": n,
            "start_ns": EPOCH_NS + s * S,
            "dur_ns": took and took * S,
            "order": k,
            "source": source,
        }
        for k, (n, s) in told
    ]


def run(*told) -> MemoryTables:
    """The first tells of the starts of the job, too."""
    columns = {name: [row[name] for one in told for row in one] for name in told[0][0]}
    starts = [EPOCH_NS + at * S for at in (0, 1900)][: told[0][-1]["attempt"] + 1]
    nothing = [None] * len(starts)
    life = {"kind": ["job"] * len(starts), "start_ns": starts, "end_ns": nothing, "source": ["entries"] * len(starts)}
    return MemoryTables({"steps": columns, "lifecycle": life})


@pytest.mark.parametrize(("marked", "logged", "kept", "stops"), [(50, 120, 100, 1), (120, 50, 100, 1), (50, 45, 50, 0)])
def test_steps_go_by_the_input_that_tells_of_more(marked, logged, kept, stops):
    """The entries end before the restart, or the log does; neither is left out without a word."""
    here = run(rows(NUMBERS[:marked], AT[:marked], "entries"), rows(NUMBERS[:logged], AT[:logged], "a.log", 20))
    past = history(here, facts_of({}))
    assert int(past.rows["kept"].sum()) == kept
    assert interruptions.analyze(here, facts_of({"chips": 8}), {}).count == stops
    assert goodput.analyze(here, facts_of({}), {"rules": "exact"}).disruptions == stops
    said = [note for note in past.notes if "before or after" in note]
    assert said == (
        ["a.log: 70 steps lie before or after all that entries tells of, so all steps are taken from it."]
        if marked < logged
        else []
    )


def test_of_two_that_each_lack_an_end_what_is_left_out_is_said():
    log = slice(30, 80)
    here = run(rows(NUMBERS[:60], AT[:60], "entries"), rows(NUMBERS[log], AT[log], "a.log", 20))
    past = history(here, facts_of({}))
    assert past.origin == "goodput entries" and len(past.rows) == 60
    assert "a.log: 20 steps lie before or after all that entries tells of, and are left out." in past.notes


def test_a_log_of_another_job_lends_nothing_and_is_left_out():
    other = rows(np.arange(300, 500), 100 + 7 * np.arange(200), "b.log", 7)
    here = run(rows(NUMBERS[:60], AT[:60], "entries"), [row for row in other])
    alone, beside = (history(x, facts_of({})) for x in (run(rows(NUMBERS[:60], AT[:60], "entries")), here))
    assert beside.rows["dur_ns"].equals(alone.rows["dur_ns"]) and beside.strangers == ("b.log",)
    assert any(note.startswith("b.log: left out") and "another job" in note for note in beside.notes)


THRICE = np.concatenate((np.arange(60), np.arange(40, 140), np.arange(120, 200)))
THEN = np.concatenate((100 + 20 * np.arange(60), 2000 + 20 * np.arange(100), 6000 + 20 * np.arange(80)))


def test_steps_of_an_attempt_whose_log_is_not_there_are_those_of_the_entries():
    """The log tells of 15 steps after the last entry, and of none of the second attempt."""
    log = np.r_[:60, 160:240]
    here = run(rows(THRICE[:-15], THEN[:-15], "entries"), rows(THRICE[log], THEN[log], "a.log", 20))
    past = history(here, facts_of({}))
    assert past.origin == "goodput entries" and int(past.rows["kept"].sum()) == 185
    assert "a.log: 15 steps lie before or after all that entries tells of, and are left out." in past.notes


@pytest.mark.parametrize("entries", [np.r_[:60, 160:240], np.r_[:50, 150:160]])
def test_a_log_that_tells_of_steps_whose_entries_were_lost_is_of_the_same_job(entries):
    """Of one attempt of three, or of a hundred steps across two."""
    here = run(rows(THRICE[entries], THEN[entries], "entries"), rows(THRICE, THEN, "a.log", 20))
    past = history(here, facts_of({}))
    assert past.origin == "step lines" and int(past.rows["kept"].sum()) == 200 and not past.strangers
    assert any("at times of which entries tells nothing, so all steps are taken from it." in n for n in past.notes)


def test_a_log_of_another_job_that_ran_while_this_one_was_down_is_left_out():
    entries = np.r_[:60, 160:240]
    other = rows(np.arange(900, 1300), 1700 + 10 * np.arange(400), "b.log", 10)
    past = history(run(rows(THRICE[entries], THEN[entries], "entries"), other), facts_of({}))
    assert past.strangers == ("b.log",)


def test_the_jobs_own_log_is_kept_where_that_of_another_job_tells_of_more():
    """Of the two logs the other job's has more lines, at the same times."""
    own, other = (
        rows(NUMBERS[:60], AT[:60], "a.log", 20),
        rows(np.arange(300, 800), 100 + 2 * np.arange(500), "b.log", 2),
    )
    past = history(run(rows(NUMBERS[:60], AT[:60], "entries"), own, other), facts_of({}))
    assert past.strangers == past.foreign == ("b.log",)
    assert (
        past.rows["dur_ns"].iloc[-1] == 20 * S
    )  # the last step has no entry after it: its line tells how long it took
    assert [note.partition(":")[0] for note in past.notes if "another job" in note] == ["b.log"]


def test_means_over_many_steps_are_of_the_same_job_though_they_hold_a_save():
    """A save of 60 s after each hundredth step of 1 s: of the log each of a hundred took 1.6 s and a little."""
    number = np.arange(800)
    hundred = number // 100
    log = rows(number, (10 + 1.6 * (number % 100) + 160 * hundred).astype(int), "a.log", 1)
    log = [{**row, "dur_ns": int(1.6 * S) + int(h)} for row, h in zip(log, hundred, strict=True)]
    past = history(run(rows(number, 10 + number + 60 * hundred, "entries"), log), facts_of({}))
    assert past.origin == "goodput entries" and not past.strangers
    assert not [note for note in past.notes if "another job" in note]
