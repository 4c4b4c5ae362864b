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
