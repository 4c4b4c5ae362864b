"""What start-up costs an attempt is told of each attempt, however its logs number them."""

import pytest

from app.cli.commands.findings import read_gate
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


def begun_late(place, kind, share):
    """A job of 200 steps of a second, this share of which went into something before the first of them."""
    before = round(200 * share / (1 - share)) * S
    first = START_NS + before
    steps = made_runs.step_columns([S] * 200, first)
    life = {"kind": ["job", kind], "start_ns": [START_NS] * 2, "end_ns": [first + 200 * S, first], "attempt": [0, 0]}
    life |= {"order": [0, 1], "source": ["train.log"] * 2}
    if kind == "other":
        life = {name: values[:1] for name, values in life.items()}
    run = made_runs.write(place.store, f"{kind} {share}", {"steps": steps, "lifecycle": life}, {"chips": 4})
    return ask(FINDINGS, run, {}, place.registry)


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        ("accelerator_initialization", "accelerator initialisation"),
        ("checkpoint_restore", "checkpoint restore"),
        ("other", "entered as other"),
    ],
)
def test_what_holds_most_of_a_job_and_is_no_finding_is_not_said_to_be_nothing(place, kind, named):
    """The verdict was that nothing stands out, and a gate on gains passed."""
    result = begun_late(place, kind, 0.6)
    account, share, _ = result.unjudged
    assert account == kind and share == pytest.approx(0.6, abs=1e-6)
    assert result.to_dict()["verdict"] == "not_told" and not result.findings
    said = FINDINGS.verdict(result)
    assert said.startswith("No finding explains 60 % of the chip time") and f"is {named}." in said
    assert read_gate("gain>50%")[1](result) is None
    little = begun_late(place, kind, 0.4)
    assert little.unjudged is None and "No finding explains" not in FINDINGS.verdict(little)
