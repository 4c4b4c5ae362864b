"""Gates over a comparison: `step_time>+1%`. A gate that could not have seen what it looks for does not pass."""

import operator
import re
from dataclasses import dataclass

from analyzers.difference import DifferenceResult
from errors import QuestionError
from runs.accounts import ACCOUNTS

GATE = re.compile(r"\s*([a-z_]{1,40})\s*([<>])\s*([+-]?\d{1,6}(?:\.\d{1,6})?)\s*(%?)\s*", re.ASCII)
STEP, HELD = "step_time", "held_per_step"
FORM = "step_time>+1%, held_per_step>+5%, or an account of a kept step such as input_wait>+0.5% (of A's step)"
IDLE = tuple(name for name in ACCOUNTS if name.startswith("idle_"))
PARTS = {"device_idle": IDLE}
OF_A_STEP = (
    "useful_maths",
    "padding",
    "recomputation",
    "below_roofline",
    "exposed_communication",
    "exposed_copies",
    "straggler_wait",
    "input_wait",
    "compilation",
    "device_idle",
    *IDLE,
)
"""Accounts that a step can be compared by; what is no kept step is in `held_per_step`."""
FAILED, PASSED, NOT_TOLD = "failed", "passed", "cannot be told"


@dataclass(frozen=True)
class Gate:
    """`figure`: what is looked at; `bound`: share of A's step by which it may change; `more`: whether more is worse."""

    text: str
    figure: str
    bound: float
    more: bool

    def judge(self, result: DifferenceResult) -> str:
        """FAILED where the change is more than chance and beyond the bound, NOT_TOLD where a change of that size could
        not have been seen, else PASSED."""
        found = self._change(result)
        if found is None:
            return NOT_TOLD
        change, low, high = found
        beyond = operator.gt if self.more else operator.lt
        if beyond(change, self.bound) and not low <= 0 <= high:
            return FAILED
        stalled = change + self._stalled(result)
        reach = max(high, stalled) if self.more else min(low, stalled)
        return NOT_TOLD if beyond(reach, self.bound) else PASSED

    def _stalled(self, result: DifferenceResult) -> float:
        """What stalls add to the change of a step: they are too few to be told from chance, and no gate passes on
        them."""
        if self.figure != STEP or result.step is None:
            return 0.0
        return (result.stalls_s[1] - result.stalls_s[0]) / result.step.a

    def _change(self, result: DifferenceResult) -> tuple[float, float, float] | None:
        """(change, low, high) as shares of A's step; None where it has no range."""
        if self.figure == STEP:
            step = result.step
            if step is None or step.low is None or step.high is None:
                return None
            low, high = (step.low, step.high) if step.told else (min(step.low, 0.0), max(step.high, 0.0))
            return step.change, low, high
        if self.figure == HELD:
            a, b = (sum(getattr(c, side) for c in result.whole) for side in "ab")
            change = b / a - 1 if a else 0.0
            return (change, change, change) if a else None
        whole = sum(c.a for c in result.ledger)
        mine = [c for c in result.ledger if c.account == self.figure or c.account in PARTS.get(self.figure, ())]
        if not whole:
            return None
        if any(c.low is None or c.high is None for c in mine):
            return None
        change, low, high = (sum(getattr(c, n) or 0.0 for c in mine) / whole for n in ("change", "low", "high"))
        return change, low, high


def gate(text: str) -> Gate:
    """Raises QuestionError for what is no gate."""
    form = GATE.fullmatch(text)
    if form is None or form[1] not in (STEP, HELD, *OF_A_STEP):
        raise QuestionError(f"no gate: {text[:60]!r}", expected=FORM)
    figure, sign, number, percent = form.groups()
    bound = float(number) / 100 if percent else float(number)
    if abs(bound) > 100:
        raise QuestionError(f"{text[:60]!r} asks for more than a hundredfold", expected=FORM)
    return Gate(text.strip(), figure, bound, sign == ">")
