"""What every analyzer shares: the shape of its module and of its options.

An analyzer is a module in this folder, listed once in `analyzers.ANALYZERS`, with:

    NAME     the question's name in `show RUN NAME`, in URLs and in the API
    HELP     the question it answers, as one sentence
    OPTIONS  tuple of Option: what can be varied
    analyze(tables, facts, options) -> a frozen result with `to_dict()` (the JSON contract)
"""

from collections.abc import Mapping
from typing import Any, Protocol

from errors.options import Option
from runs.run import FactValue
from runs.tables import Tables

Facts = Mapping[str, FactValue]
OPTION = "option"  # source of a fact that a question was asked with


class Result(Protocol):
    def to_dict(self) -> dict[str, Any]: ...


class Analyzer(Protocol):
    NAME: str
    HELP: str
    OPTIONS: tuple[Option, ...]

    def analyze(self, tables: Tables, facts: Facts, options: Mapping[str, Any]) -> Result: ...


def with_options(facts: Facts, options: Mapping[str, Any], names: tuple[str, ...]) -> Facts:
    """The facts, with those of `names` that an option gives taken from there: what is asked wins over what is known."""
    given = {n: FactValue(options[n], "declared", OPTION) for n in names if options.get(n) is not None}
    return {**facts, **given}


def fact(facts: Facts, name: str) -> Any:
    return facts[name].value if name in facts else None
