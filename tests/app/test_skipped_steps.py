"""Steps that a log says were skipped as gradients overflowed: found where they are many, once the loss scale stands."""

import numpy as np
import pytest

from app.questions.asking import ask
from app.questions.findings import FINDINGS
from tests.app import made_runs
from tests.app.made_runs import S

MEGATRON, DEEPSPEED = "number of skipped iterations", "skipped"


def asked(place, skipped, name=MEGATRON, every=1):
    """A job of steps of ten seconds, of which these were skipped; a line tells of so many."""
    count = len(skipped)
    steps = made_runs.step_columns([10 * S] * count) | {"format": ["megatron"] * count}
    first = steps["step"][0]
    at = np.arange(every - 1, count, every)
    so_far = np.cumsum(skipped)[at]
    told = so_far if name == DEEPSPEED else np.diff(so_far, prepend=0)
    scalars = {"step": [int(n) + first for n in at], "value": [float(v) for v in told]}
    scalars |= {"name": [name] * len(at), "source": ["train.log"] * len(at)}
    tables = {"steps": steps, "scalars": scalars}
    run = made_runs.write(place.store, f"{name} {every} {sum(skipped)} {count}", tables, {"chips": 4})
    return ask(FINDINGS, run, {}, place.registry)


@pytest.mark.parametrize("name", [MEGATRON, DEEPSPEED])
@pytest.mark.parametrize("every", [1, 10])
def test_steps_that_were_skipped_are_found_with_what_they_took(place, name, every):
    """A fifth of the steps trained nothing, and nothing stood out."""
    result = asked(place, [n % 5 == 0 for n in range(600)], name, every)
    (found,) = (f for f in result.findings if f.cause == "skipped_steps")
    count = int(found.title.split()[0])
    assert 600 // 5 - 12 <= count <= 600 // 5 and "of 600 steps were skipped" in found.title
    assert found.likely == pytest.approx(result.ledger.amount("productive") * count / 600)
    assert sum(found.draws.values()) == pytest.approx(found.likely)


@pytest.mark.parametrize(
    "skipped",
    [
        [True] * 30 + [False] * 300,  # the scale comes down from where it begins
        [True] * 16 + [n % 100 == 0 for n in range(3000)],  # and is tried again now and then
        [True] * 40,  # a trial
        [False] * 300,
    ],
)
def test_a_loss_scale_that_finds_its_place_is_no_finding(place, skipped):
    assert not [f for f in asked(place, skipped).findings if f.cause == "skipped_steps"]


def test_a_count_that_begins_anew_with_the_job_takes_none_back(place):
    """DeepSpeed counts from zero again where the job was started without its state."""
    steps = made_runs.step_columns([10 * S] * 600) | {"format": ["deepspeed"] * 600}
    so_far = [n // 5 for n in range(300)] + [n // 5 for n in range(300)]
    scalars = {"step": steps["step"], "value": [float(v) for v in so_far]}
    scalars |= {"name": [DEEPSPEED] * 600, "source": ["train.log"] * 600}
    run = made_runs.write(place.store, "anew", {"steps": steps, "scalars": scalars}, {"chips": 4})
    (found,) = ask(FINDINGS, run, {}, place.registry).findings
    assert found.title.startswith("108 of 600 steps were skipped")


@pytest.mark.parametrize(("before", "every"), [(300, 100), (300, 60), (0, 100)])
def test_what_a_line_tells_of_the_time_before_is_none_of_its_steps(place, before, every):
    """DeepSpeed counts all since the job was new: of a job that went on from a save 100 steps were told as skipped, and
    so were the 30 in which a scale came down, where the first line tells of 100 steps."""
    count, first = 600, 10_000 if before else 0
    steps = made_runs.step_columns([10 * S] * count) | {"format": ["deepspeed"] * count}
    steps["step"] = [first + n + 1 for n in range(count)]
    at = list(range(every, count + 1, every))
    scalars = {"step": [first + n for n in at], "value": [float(before or 30) for _ in at]}
    scalars |= {"name": [DEEPSPEED] * len(at), "source": ["train.log"] * len(at)}
    run = made_runs.write(place.store, f"on {before} {every}", {"steps": steps, "scalars": scalars}, {"chips": 4})
    result = ask(FINDINGS, run, {}, place.registry)
    assert not [f for f in result.findings if f.cause == "skipped_steps"]
    assert any(out.cause == "skipped_steps" and out.why.startswith("0 steps") for out in result.ruled_out)
