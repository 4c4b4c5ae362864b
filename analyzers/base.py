"""What every analyzer shares: the shape of its module and of its options.

An analyzer is a module in this folder, listed once in `analyzers.ANALYZERS`, with:

    NAME     the question's name in `show RUN NAME`, in URLs and in the API
    HELP     the question it answers, as one sentence
    OPTIONS  tuple of Option: what can be varied
    analyze(tables, facts, options) -> a frozen result with `to_dict()` (the JSON contract)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from errors import QuestionError
from runs.run import FactValue
from runs.tables import Tables

Facts = Mapping[str, FactValue]


@dataclass(frozen=True)
class Option:
    """An option of an analyzer. `kind` is float, int, str, or a tuple of words; default None = not given."""

    name: str
    kind: type | tuple[str, ...]
    default: Any
    help: str

    def parse(self, text: Any) -> Any:
        """The value from text. Raises QuestionError with what would be right."""
        if text is None:
            return self.default
        if isinstance(self.kind, tuple):
            if str(text) not in self.kind:
                raise QuestionError(f"option {self.name}={text!r}", expected=f"one of {', '.join(self.kind)}")
            return str(text)
        if self.kind is str:
            return str(text)
        try:
            value = self.kind(text)
        except (TypeError, ValueError):
            value = None
        if value is None or value != value or value in (float("inf"), float("-inf")):
            raise QuestionError(f"option {self.name}={text!r}", expected=f"a number ({self.kind.__name__})")
        return value


class Result(Protocol):
    def to_dict(self) -> dict[str, Any]: ...


class Analyzer(Protocol):
    NAME: str
    HELP: str
    OPTIONS: tuple[Option, ...]

    def analyze(self, tables: Tables, facts: Facts, options: Mapping[str, Any]) -> Result: ...


def parse_options(options: tuple[Option, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """Every option's value. Raises QuestionError for one that does not exist."""
    known = {o.name: o for o in options}
    for name in given:
        if name not in known:
            raise QuestionError(f"no option {name!r} here", expected=f"one of {', '.join(known) or 'none'}")
    return {name: option.parse(given.get(name)) for name, option in known.items()}


def with_options(facts: Facts, options: Mapping[str, Any], names: tuple[str, ...]) -> Facts:
    """The facts, with those of `names` that an option gives taken from there: what is asked wins over what is known."""
    given = {n: FactValue(options[n], "declared", "option") for n in names if options.get(n) is not None}
    return {**facts, **given}


def fact(facts: Facts, name: str) -> Any:
    return facts[name].value if name in facts else None
