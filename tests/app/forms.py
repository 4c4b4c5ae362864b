"""Whether an answer has the form that its question declares."""

import functools
from typing import Any

from jsonschema import Draft202012Validator

from app.questions.base import Question
from app.questions.forms import form

SHOWN = 160  # characters of what does not fit


@functools.cache
def _validator(question: Question[Any]) -> Draft202012Validator:
    return Draft202012Validator(form(question))


def misfits(question: Question[Any], answer: dict[str, Any]) -> list[str]:
    """Where an answer is not what its form says, and how; empty where it is."""
    return [f"{e.json_path}: {e.message[:SHOWN]}" for e in _validator(question).iter_errors(answer)]
