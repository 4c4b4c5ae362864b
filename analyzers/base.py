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
from errors.numbers import ANY, ANY_WHOLE, Number
from runs.run import FactValue
from runs.tables import Tables

Facts = Mapping[str, FactValue]
OPTION = "option"  # source of a fact that a question was asked with
_SHOWN = 80  # characters of a value that is refused


@dataclass(frozen=True)
class Option:
    """An option of an analyzer. `kind` is str, a tuple of words, float or int (any finite number, any whole one), or a
    Number with bounds; default None = not given."""

    name: str
    kind: type | tuple[str, ...] | Number
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
        number = self.kind if isinstance(self.kind, Number) else ANY_WHOLE if self.kind is int else ANY
        said = str(text)[:_SHOWN] if ANY.reads(text) else repr(str(text)[:_SHOWN])
        return number.read(text, self.name, shown=f"option {self.name}={said}")


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
    given = {n: FactValue(options[n], "declared", OPTION) for n in names if options.get(n) is not None}
    return {**facts, **given}


def fact(facts: Facts, name: str) -> Any:
    return facts[name].value if name in facts else None
