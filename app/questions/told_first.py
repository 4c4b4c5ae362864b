"""What a run tells of itself before anybody says a fact more: where little of its chip time can be told, its requests'
latency or its steps can."""

import contextlib
from collections.abc import Callable
from typing import Any

from app.questions.asking import ask
from app.questions.base import Question
from app.questions.goodput import GOODPUT
from app.questions.latency import LATENCY
from app.questions.load import LOAD
from app.questions.mfu import MFU
from app.questions.steps import STEPS
from errors import ChipledgerError
from runs.registry import Registry
from runs.run import Run

# in this order; an answer without its headline, such as an MFU of no known peak, is left to whoever asks for the fact
FIRST: tuple[tuple[Question[Any], Callable[[Any], bool]], ...] = (
    (LATENCY, lambda r: True),
    (LOAD, lambda r: True),
    (MFU, lambda r: r.mfu is not None),
    (GOODPUT, lambda r: True),
    (STEPS, lambda r: r.median_step_s is not None),
)
AT_MOST = 2


def told_first(run: Run, registry: Registry, without: str = "") -> list[tuple[Question[Any], str]]:
    """The questions that have something to tell of the run, each with its verdict; `without` the one of this name."""
    found = list[tuple[Question[Any], str]]()
    for question, tells in FIRST:
        if len(found) == AT_MOST:
            break
        if question.name == without or not question.tells_of(run):
            continue
        with contextlib.suppress(ChipledgerError):
            result = ask(question, run, {}, registry)
            if tells(result):
                found.append((question, question.verdict(result)))
    return found
