"""A step a thousand times its peers' is a hang; a long save, an evaluation, a slow fetch or a first step is none."""

import numpy as np
import pytest

from analyzers.lost import goodput
from analyzers.time import ledger, steps
from analyzers.time.hangs import HANG_LEAST_NS, HANG_TIMES, PEERS
from analyzers.time.history import history
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.analyzers.worlds import EPOCH

S = 1_000_000_000


def marked(gap_s: float, at: int = 50, count: int = 100, step_s: float = 10.0, life=()) -> MemoryTables:
    """A job of marked steps, one of which lasts `gap_s`; `life`: (kind, start, end) in s after that step's start."""
    begun = np.arange(count) * step_s + np.where(np.arange(count) > at, gap_s - step_s, 0)
    end = begun[-1] + step_s
    events = [("job", 0.0, end), *((kind, begun[at] + a, begun[at] + b) for kind, a, b in life)]
    return MemoryTables(
        {
            "steps": {"step": range(count), "order": range(count), "start_ns": [EPOCH + round(t * S) for t in begun]},
            "lifecycle": {
                "kind": [k for k, *_ in events],
                "start_ns": [EPOCH + round(a * S) for _, a, _ in events],
                "end_ns": [EPOCH + round(b * S) for *_, b in events],
            },
        }
    )


@pytest.mark.parametrize("gap_s", [6 * 3600.0, 8 * 86400.0])
def test_what_goes_beyond_a_usual_step_is_a_hang(gap_s):
    here = marked(gap_s)
    book = ledger.analyze(here, facts_of({"chips": 2}), {}).ledger
    assert book.amount("hang") == pytest.approx(2 * (gap_s - 10))
    assert book.amount("productive") == pytest.approx(2 * 1000)
    share = goodput.analyze(here, facts_of({}), {"rules": "exact"})
    assert share.goodput_share == pytest.approx(1000 / (990 + gap_s))
    assert share.badput_s["custom_badput_events"] == {"HANG": pytest.approx(gap_s - 10)}
    assert share.productive_s + share.badput_total_s == pytest.approx(share.total_s, rel=1e-9)
    assert any("Step 50 took" in note and "usual one takes 10 s" in note for note in share.notes)
    told = steps.analyze(here, facts_of({}), {})
    assert told.median_step_s == 10 and any("it hung" in note for note in told.notes)


@pytest.mark.parametrize(("step_s", "limit_s"), [(10.0, HANG_TIMES * 10.0), (0.5, HANG_LEAST_NS / S)])
def test_a_hang_has_a_reference_and_a_floor(step_s, limit_s):
    below, above = (history(marked(limit_s + x, step_s=step_s), {}).rows["hung_ns"].max() for x in (-1, 1))
    assert below == 0 and above == pytest.approx((limit_s + 1 - step_s) * S)


def test_what_the_job_recorded_is_no_hang():
    saved = ledger.analyze(marked(7200.0, life=[("checkpoint_save", 5, 7195)]), facts_of({"chips": 1}), {}).ledger
    assert saved.amount("hang") == 0 and saved.amount("checkpoint_save") == pytest.approx(7190)
    partly = ledger.analyze(marked(7200.0, life=[("eval", 5, 605)]), facts_of({"chips": 1}), {}).ledger
    assert partly.amount("eval") == pytest.approx(600)
    assert partly.amount("hang") + partly.amount("productive") == pytest.approx(990 + 7200 - 600)
    fetched = ledger.analyze(marked(7200.0, life=[("data_loading", 5, 7195)]), facts_of({"chips": 1}), {}).ledger
    assert fetched.amount("hang") == 0 and fetched.amount("input_wait") > 7000


@pytest.mark.parametrize("off_s", [-8 * 3600, 8 * 3600])
@pytest.mark.parametrize("told_by", ["0.log", "other.log"])
def test_what_was_recorded_is_no_hang_by_whichever_clock(off_s, told_by):
    """An evaluation of 1,100 s in a log by the job's clock, beside one eight hours ahead, was told as a hang."""
    told = [(s, n) for s in ("0.log", "1.log", "other.log") for n in range(60)]
    at = [3 * n + (1197 if n > 40 else 0) + (off_s if s == "other.log" else 0) for s, n in told]
    begun = EPOCH + (3 * 40 + 50 + (off_s if told_by == "other.log" else 0)) * S
    steps = {
        "source": [s for s, _ in told],
        "attempt": [0] * len(told),
        "step": [n for _, n in told],
        "start_ns": [EPOCH + t * S for t in at],
        "dur_ns": [(1200 if n == 40 else 3) * S for _, n in told],
        "order": range(len(told)),
    }
    life = {"source": [told_by], "kind": ["eval"], "start_ns": [begun], "end_ns": [begun + 1100 * S]}
    past = history(MemoryTables({"steps": steps, "lifecycle": life}), {})
    assert past.shifts == {"other.log": -off_s * S} and past.rows["hung_ns"].max() == 0


def test_a_first_step_compiles_and_few_steps_are_no_reference():
    assert history(marked(7200.0, at=0), {}).rows["hung_ns"].max() == 0
    assert history(marked(7200.0, at=2, count=4), {}).rows["hung_ns"].max() == 0
    longest = [history(marked(7200.0, at=2, count=n), {}).rows["hung_ns"].max() for n in (PEERS + 1, PEERS + 2)]
    assert longest[0] == 0 < longest[1]  # the first and the last are none to go by


def test_step_lines_without_times_have_hangs_too():
    here = MemoryTables(
        {
            "steps": {
                "step": range(30),
                "dur_ns": [S] * 20 + [3600 * S] + [S] * 9,
                "order": range(30),
                "source": ["a.log"] * 30,
                "attempt": [0] * 30,
            }
        }
    )
    book = ledger.analyze(here, facts_of({"chips": 1}), {}).ledger
    assert book.amount("hang") == pytest.approx(3599) and book.amount("productive") == pytest.approx(30)
    share = goodput.analyze(here, facts_of({}), {"rules": "exact"})
    assert (share.productive_s, share.total_s) == (pytest.approx(30), pytest.approx(3629))
    assert share.badput_s["custom_badput_events"] == {"HANG": pytest.approx(3599)}
