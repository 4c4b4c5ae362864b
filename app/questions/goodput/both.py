"""The answers of the goodput page: by the rules that were chosen, and by the others beside them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analyzers.lost.goodput.query import EXACT, LIBRARY
from analyzers.lost.goodput.result import GoodputResult
from app.components.model_picker import About
from app.questions.asking import ask
from app.questions.goodput import GOODPUT
from errors import QuestionError


@dataclass(frozen=True)
class Both:
    """`result` by the rules chosen; `other` by the others, None where they have no answer."""

    result: GoodputResult
    other: GoodputResult | None

    @property
    def exact(self) -> GoodputResult | None:
        return self.result if self.result.rules == EXACT else self.other

    @property
    def library(self) -> GoodputResult | None:
        return self.other if self.result.rules == EXACT else self.result


def both(about: About, given: Mapping[str, Any]) -> Both:
    """Raises QuestionError where the rules chosen have no answer."""
    result = ask(GOODPUT, about.subject, given, about.place.registry)
    return Both(result, tried(about, {**given, "rules": LIBRARY if result.rules == EXACT else EXACT}))


def tried(about: About, given: Mapping[str, Any]) -> GoodputResult | None:
    """The answer, or None where there is none."""
    try:
        return ask(GOODPUT, about.subject, given, about.place.registry)
    except QuestionError:
        return None
