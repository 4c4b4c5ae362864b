"""What start-up costs an attempt is told of each attempt, however its logs number them."""

import pytest

from app.questions.asking import ask
from app.questions.findings import FINDINGS
from tests.app import made_runs
from tests.app.made_runs import START_NS, S

STEPS, FIRST_S = 40, 61


def chained(place):
    """Three jobs, a log each, one after the other: of 40 steps of a second the first takes a minute longer."""
    took = [FIRST_S if n == 0 else 1 for n in range(STEPS)]
    lasts = sum(took) * S
    columns = {name: [] for name in ("step", "start_ns", "dur_ns", "attempt", "order", "source")}
    life = {name: [] for name in ("kind", "start_ns", "end_ns", "attempt", "order", "source")}
    for job in range(3):
        begin, source = START_NS + job * (lasts + 5 * S), f"slurm-{job}.out"
        for n, seconds in enumerate(took):
            row = (job * STEPS + n, begin + sum(took[:n]) * S, seconds * S, 0, n, source)
            for name, value in zip(columns, row, strict=True):
                columns[name].append(value)
        for name, value in zip(life, ("job", begin, begin + lasts, 0, STEPS, source), strict=True):
            life[name].append(value)
    run = made_runs.write(place.store, "chained", {"steps": columns, "lifecycle": life}, {"chips": 4})
    return ask(FINDINGS, run, {}, place.registry)


def test_logs_that_each_count_from_nought_are_attempts_of_their_own(place):
    """Of all three together it was told as of one: three minutes an attempt."""
    (cold,) = (f for f in chained(place).findings if f.cause == "cold_cache")
    assert cold.title.startswith("Start-up and compiling take 1 min an attempt, 60 %")
    assert cold.gain is not None and cold.gain.high == pytest.approx(3 * 60 * 4)
