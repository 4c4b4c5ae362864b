"""Steps far faster than the usual one: whether something waited for them after all, or they ran so fast."""

import pytest

from analyzers.time.history import TOO_FAST, history
from analyzers.time.quick_steps import as_run
from runs.tables import MemoryTables

S, EPOCH = 1_000_000_000, 1_767_571_200_000_000_000


def judged(took_s, end_s=0.0, ended=True, later=()):
    """Which of a job's steps are doubted. `end_s`: what passes after the last step; `later`: a restart's steps."""
    took_s = [1.0, *took_s]
    starts = [EPOCH + int(sum(took_s[:n]) * S) for n in range(len(took_s))]
    end = EPOCH + int((sum(took_s) + end_s) * S)
    again = [end + int((60 + n) * S) for n in range(len(later))]
    count = len(starts) + len(again)
    steps = {
        "step": [*range(len(starts)), *range(len(again))],
        "start_ns": starts + again,
        "attempt": [0] * count,
        "source": ["goodput.jsonl"] * count,
        "order": list(range(count)),
    }
    ends = ([end] if ended else []) + ([again[-1] + S] if again else [])
    jobs = [EPOCH - S, *([end + 30 * S] if again else [])]
    job = {
        "kind": ["job"] * (len(jobs) + len(ends)),
        "start_ns": [*jobs, *[None] * len(ends)],
        "end_ns": [*[None] * len(jobs), *ends],
        "source": ["goodput.jsonl"] * (len(jobs) + len(ends)),
        "order": [1000 + n for n in range(len(jobs) + len(ends))],
    }
    tables = MemoryTables({"steps": steps, "lifecycle": job})
    rows = as_run(history(tables, {}), tables).rows
    return (rows["implausible"] == TOO_FAST).tolist()[1 : len(took_s)]


QUICK, SLOW = [0.01] * 13, [0.12] * 26


def test_steps_that_became_many_times_slower_were_as_fast_as_they_say():
    assert not any(judged(QUICK + SLOW))
    assert not any(judged(SLOW[:10] + QUICK + SLOW)), "quick in between"


@pytest.mark.parametrize("share", [1.0, 0.6])
def test_steps_for_which_a_later_one_waits_were_timed_before_they_had_run(share):
    lacking = share * 13 * 0.11
    assert judged(QUICK + [0.12 + lacking] + SLOW)[:13] == [True] * 13
    assert judged(QUICK + SLOW + [lacking + 0.12])[:13] == [True] * 13, "the last one"
    assert judged(QUICK + SLOW, end_s=lacking)[:13] == [True] * 13, "the end"
    assert judged(QUICK + [0.12 + lacking / 26] * 26)[:13] == [False] * 13, "all are as slow"


def test_of_a_job_that_was_cut_off_it_is_not_known():
    assert judged(QUICK + SLOW, ended=False)[:13] == [True] * 13
    assert judged(QUICK + SLOW, ended=False, later=[1, 1, 1])[:13] == [True] * 13, (
        "another attempt's end is not its own"
    )


def test_quick_steps_at_the_end_are_doubted_where_the_end_took_what_they_lack():
    assert judged(SLOW + QUICK, end_s=13 * 0.11)[-13:] == [*[True] * 12, False], "the last one lasts until the end"
    assert not any(judged(SLOW + QUICK))
