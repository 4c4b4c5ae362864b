"""What first steps take beyond usual ones is startup, whether or not the log tells times of day."""

import random

import pytest

from analyzers.lost.goodput.buckets import CUSTOM, HANG, leaves
from analyzers.time import ledger
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.analyzers.goodput_asked import ask
from tests.analyzers.told_jobs import S, Take, log, tables

PEAK = 2e12  # of told jobs' 1e12 FLOPs a step: half a second at the peak


def job(*attempts: tuple[int, int, float], usual_s: float = 20.0) -> list[Take]:
    """Attempts, one right after the other, each (first step, how many, how long its first step takes)."""
    out: list[Take] = []
    now = 0.0
    for k, (first, count, first_s) in enumerate(attempts):
        for n in range(count):
            took = usual_s if n else first_s
            out.append(Take(k, first + n, now, took))
            now += took
    return out


def booked(takes: list[Take], timed: bool) -> dict[str, float]:
    """Seconds by account; goodput by the exact rules says the same."""
    rows = log(random.Random(1), takes, "a.log", timed=timed)
    return agreed(tables(rows))


def agreed(here: MemoryTables) -> dict[str, float]:
    book = ledger.analyze(here, facts_of({"chips": 4, "peak_flops_per_s": PEAK}), {}).ledger
    names = ("productive", "useful_maths", "program_startup", "wasted_progress", "hang")
    found = {name: book.amount(name) / 4 for name in names}
    assert sum(a.chip_seconds for _, a in book.account.walk() if not a.children) == pytest.approx(book.chip_seconds)
    share = ask(here)
    assert share.total_s == pytest.approx(book.chip_seconds / 4)
    assert share.productive_s == pytest.approx(found["productive"])
    assert share.badput_s["program_startup"] == pytest.approx(found["program_startup"])
    assert share.badput_s["wasted_progress_from_disruption"] == pytest.approx(found["wasted_progress"])
    assert leaves(share.badput_s).get(f"{CUSTOM}.{HANG}", 0.0) == pytest.approx(found["hang"])
    return found


@pytest.mark.parametrize(
    "takes",
    [
        job((0, 200, 900.0)),
        job((0, 60, 300.0), (40, 60, 500.0)),  # twenty steps are taken again
        job((0, 60, 300.0), (0, 60, 500.0)),  # all of them, the slow first one too
        [*job((0, 60, 300.0)), Take(0, 60, 1480.0, 9000.0), Take(0, 61, 10_480.0, 20.0)],  # one hung
    ],
    ids=["once", "restarted", "from the beginning", "hung"],
)
def test_a_log_without_times_of_day_starts_up_as_long_as_one_with_them(takes):
    plain, timed = booked(takes, timed=False), booked(takes, timed=True)
    assert plain == pytest.approx(timed, rel=0.01)
    assert plain["program_startup"] > 250


def test_startup_is_the_first_step_beyond_a_usual_one_and_no_useful_maths_is_lost_by_it():
    found = booked(job((0, 200, 900.0)), timed=False)
    assert found["program_startup"] == pytest.approx(880, rel=0.01)
    assert found["productive"] == pytest.approx(200 * 20, rel=0.01)
    assert found["useful_maths"] == pytest.approx(200 * 0.5)


@pytest.mark.parametrize(
    ("steps", "attempt", "took"),
    [
        ([0], [0], [900]),  # nothing tells how long a usual one takes
        ([5, 7, 9], [0, 1, 2], [900, 40, 30]),
        ([0, 1, 2, 3], [0] * 4, [10, 20, 20, 20]),  # faster than the others
        ([0, 1, 2, 3], [0] * 4, [20, 20, 200, 20]),  # another one is slow
    ],
)
def test_nothing_started_up_where_no_first_step_is_known_to_have_taken_longer(steps, attempt, took):
    rows = {"step": steps, "attempt": attempt, "dur_ns": [s * S for s in took], "order": range(len(steps))}
    found = agreed(MemoryTables({"steps": {**rows, "source": ["a.log"] * len(steps)}}))
    assert found["program_startup"] == 0 and found["productive"] == sum(took)
