"""A pause that comes back and has no name: what it may be is not ruled out."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from analyzers.findings.parts import StepParts
from analyzers.findings.rules.pace import _work_of
from analyzers.findings.rules.stragglers import _drawn
from analyzers.time.step_patterns import StepPattern
from app.questions.asking import ask
from app.questions.findings import FINDINGS
from tests.app import made_runs
from tests.app.made_runs import S

NAMES = {"evaluation", "logging"}


def told(place, every):
    """What is found about a job of steps of a second, of which one in so many takes three."""
    took = [3 * S if every and n % every == 0 and n else S for n in range(80)]
    run = made_runs.write(place.store, f"every {every}", {"steps": made_runs.step_columns(took)}, {"chips": 4})
    return ask(FINDINGS, run, {}, place.registry)


def test_what_a_nameless_pause_may_be_is_not_ruled_out(place):
    result = told(place, 8)
    assert "periodic_pause" in {f.cause for f in result.findings}
    (gap,) = (gap for gap in result.not_told if "no event names" in gap.why)
    assert {*gap.causes} == NAMES and not NAMES & {out.cause for out in result.ruled_out}
    assert not any("no event names" in gap.why for gap in told(place, 0).not_told)


@pytest.mark.parametrize(
    ("took", "work"),
    [
        ({20: 0.6}, "evaluation"),  # what a log counts to step 19, a profile may to step 20
        ({19: 0.6}, "evaluation"),
        ({19: 0.2}, None),  # too little to be the pause
        ({15: 0.6, 19: 0.6}, None),  # in a step that is not held up as well
        ({}, None),
    ],
    ids=["next step", "same step", "little", "elsewhere", "nothing"],
)
def test_a_pause_of_which_a_profile_saw_one_has_its_name(took, work):
    rows = pd.DataFrame({"step": range(1, 40)})
    spent = [took.get(n, 0.0) if 12 <= n <= 20 else np.nan for n in rows["step"]]
    held = StepParts(rows, pd.DataFrame({"evaluation": spent}), np.zeros(39), np.zeros(39), False)
    each = {"kind": "periodic", "first_step": 11, "last_step": 35, "every": 8}
    assert _work_of(StepPattern(**each, usual_s=0.09, slow_s=0.67, excess_s=1.8), held) == work


def test_garbage_that_is_made_is_told_with_that_which_is_collected():
    """What a late rank lost by itself lies in its host's code where the account of collecting holds less."""
    seen = SimpleNamespace(amount={"idle_garbage_collection": 3.0}.__getitem__)
    assert _drawn(seen, "idle_garbage_collection", 4.0) == {"idle_garbage_collection": 3.0, "idle_host_code": 1.0}
    assert _drawn(seen, "idle_garbage_collection", 2.0) == {"idle_garbage_collection": 2.0, "idle_host_code": 0.0}
