"""Step lines stamped to the whole second: no time goes missing between steps, and no pause is filled."""

import random

import numpy as np
import pytest

from analyzers.lost import goodput
from analyzers.time.history import history
from analyzers.time.whole_seconds import SECOND_NS, laid_end_to_end
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.analyzers.told_jobs import EPOCH, S


def stamped(ends_s, took_s, whole=True, **more):
    """Step lines of steps that ended then, as a log tells that prints the second, or the millisecond, of each. `more`:
    other tables."""
    logged = [EPOCH + (int(end) * S if whole else round(end, 3) * S) for end in ends_s]
    logged = [int(at) for at in logged]
    took = [round(t * S) for t in took_s]
    count = range(len(took))
    return MemoryTables(
        {
            "steps": {
                "step": count,
                "order": count,
                "start_ns": [at - t for at, t in zip(logged, took, strict=True)],
                "dur_ns": took,
                "logged_ns": logged,
                "format": ["megatron"] * len(took),
                "source": ["a.log"] * len(took),
            },
            **more,
        }
    )


def ended(took_s, between_s=()):
    """When steps ended that followed one another, `between_s` seconds before each."""
    now, out = 0.25, []
    for n, took in enumerate(took_s):
        now += took + (between_s[n] if len(between_s) else 0)
        out.append(now)
    return out


def told(tables):
    return goodput.analyze(tables, facts_of({}), {"rules": "exact"})


@pytest.mark.parametrize("step_s", [0.3, 0.9, 1.5, 2.7, 5.5])
def test_steps_that_fill_the_stamps_leave_no_hole(step_s):
    rng = random.Random(0)
    took = [step_s * rng.uniform(0.9, 1.1) for _ in range(900)]
    result = told(stamped(ended(took), took))
    assert result.productive_s == pytest.approx(sum(took), abs=1)
    assert result.total_s == pytest.approx(sum(took), abs=1)


def test_every_end_lies_within_the_second_of_its_stamp():
    rng = random.Random(1)
    took = [rng.choice([0.2, 1.3, 7.9]) * rng.uniform(0.5, 1.5) for _ in range(2_000)]
    between = [rng.choice([0, 0, 0, 0.01, 0.6, 1.4, 60]) for _ in took]
    ends = np.array(ended(took, between))
    start = np.floor(ends) * S - np.array(took) * S
    lasted = (np.array(took) * S).astype(np.int64)
    laid = laid_end_to_end(start.astype(np.int64), lasted, np.zeros(len(took), dtype=bool))
    assert np.abs(laid + lasted - ends * S).max() <= SECOND_NS


def test_pauses_stay_short_ones_that_add_up_too():
    """Each step waits for a second that it does not print, and one for a minute."""
    took, between = [3.0] * 300, [1.0] * 300
    between[100] = 60.0
    result = told(stamped(ended(took, between), took))
    assert result.productive_s == pytest.approx(900, abs=1)
    assert result.total_s - result.productive_s == pytest.approx(298 + 60, abs=2)
    past = history(stamped(ended(took, between), took), {}).rows
    gap = np.diff(past["start_ns"].to_numpy(dtype=np.int64)) / S - 3
    assert gap[99] == pytest.approx(60, abs=1)


def test_steps_that_end_on_the_second_stay_where_they_are_beside_pauses():
    lasted = np.full(60, 3 * S)
    start = np.cumsum(lasted) + np.repeat([0, 60 * S, 90 * S], 20)
    assert laid_end_to_end(start, lasted, np.zeros(60, dtype=bool)).tolist() == start.tolist()


def test_stamps_with_a_fraction_are_held_to_be_exact():
    took, between = [3.0] * 100, [0.0] * 100
    between[50] = 0.6
    rows = history(stamped(ended(took, between), took, whole=False), {}).rows
    gap = np.diff(rows["start_ns"].to_numpy(dtype=np.int64)) / S - 3
    assert gap[49] == pytest.approx(0.6, abs=0.01)


@pytest.mark.parametrize("phase_s", [0.0, 0.37, 0.81])
def test_an_evaluation_between_short_steps_held_them_up(phase_s):
    """Steps of 0.3 s, stamped to the second, lie up to a second beside where they were taken: of evaluations of 4 s
    after every 40th all were told to have run offline, while steps were taken."""
    took = [0.3] * 200
    ends = [phase_s + end for end in ended(took, [4.0 * (n > 0 and n % 40 == 0) for n in range(200)])]
    begun = [EPOCH + int(ends[n - 1]) * S for n in range(40, 200, 40)]
    life = {"kind": ["eval"] * 4, "start_ns": begun, "end_ns": [at + 4 * S for at in begun], "source": ["a.log"] * 4}
    result = told(stamped(ends, took, lifecycle=life))
    assert result.badput_s["custom_badput_events"] == {"EVAL": pytest.approx(16)}
    assert not any("offline" in note for note in result.notes)


def test_an_evaluation_during_which_steps_were_taken_ran_offline_by_such_stamps_too():
    took = [0.3] * 200
    life = {"kind": ["eval"], "start_ns": [EPOCH + 20 * S], "end_ns": [EPOCH + 24 * S], "source": ["a.log"]}
    result = told(stamped(ended(took), took, lifecycle=life))
    assert any("1 evaluation ran offline" in note for note in result.notes)
