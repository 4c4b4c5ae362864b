"""Small words of verdicts: numbers of one, evidence that ends with a dot, shares beyond what can be, and of nothing."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analyzers.difference.step_time import change_beside_exact
from analyzers.findings.base import Evidence, Finding
from analyzers.ranks import collectives
from analyzers.ranks.collectives import UNCOMPARED, _uncompared
from app.comparing.job_words import signed
from app.questions.findings import words as found
from app.questions.interruptions.words import _how_ended
from app.questions.operations.words import _of_roof


@pytest.mark.parametrize(
    ("share", "told"), [(-2e-12, "+0 %"), (0.0, "+0 %"), (-4e-8, "−4e-06 %"), (-5e-4, "−0.05 %"), (0.061, "+6.1 %")]
)
def test_what_rounding_leaves_is_no_change(share, told):
    assert signed(share) == told


def test_one_settled_step():
    told = change_beside_exact(2.0, np.array([1.0]))
    assert told.why == "1 settled step is too few: 20 are needed"


def test_one_execution_that_was_not_compared():
    reason = next(iter(UNCOMPARED))
    rows = pd.DataFrame({"matched": [False], "reason": [reason], "axis": [None], "kind": ["all-reduce"]})

    for name in collectives.GROUPING:
        if name not in rows:
            rows[name] = "x"
    [said] = _uncompared(rows)
    assert said.startswith("1 execution was not found on every rank of its group: how long it waited")
    [said] = _uncompared(pd.concat([rows, rows]))
    assert said.startswith("2 executions were not found on every rank of their group")


@pytest.mark.parametrize(("line", "end"), [("it failed.", "it failed."), ("it failed", "it failed."), ("why?", "why?")])
def test_a_line_that_ends_with_a_dot_has_no_second(line, end):
    one = Finding(
        cause="slow_rank",
        title="x",
        gain=None,
        draws={},
        question="steps",
        confidence=0.5,
        evidence=(Evidence("times", 2.0, "", "steps"), Evidence("a line of the log", line, "", "steps")),
    )
    assert found.evidence(one).endswith(f"a line of the log {end}") and found.evidence(replace(one, evidence=())) == ""


@pytest.mark.parametrize(
    ("share", "told"),
    [
        (361.66, ", 362 times as fast as its roof allows: its FLOPs or bytes are counted too high"),
        (1.2, " at 120 % of its roof (above it)"),
        (0.5, " at 50 % of its roof"),
    ],
)
def test_an_operation_far_beyond_its_roof(share, told):
    row = {"roof_share": share, "ops": 1, "above_seconds": 1.0 if share > 1 else 0.0}
    assert _of_roof(row).startswith(told)


@pytest.mark.parametrize(
    ("causes", "told"),
    [
        (["unknown"], ""),
        (["collective_timeout"], "Log lines tell how it ended (collective timed out), and none why."),
        (
            ["collective_timeout", "process_exit", "collective_timeout"],
            "Log lines tell how they ended (collective timed out, process ended), and none why.",
        ),
    ],
)
def test_a_symptom_that_is_told_is_said(causes, told):
    class Result:
        counted = pd.DataFrame({"cause": causes})
        count = len(causes)

    assert _how_ended(Result()) == told  # type: ignore[arg-type]
