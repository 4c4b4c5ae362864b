"""What every analyzer shares.

An analyzer is a module with `OPTIONS` (what can be varied) and `analyze(tables, facts, options)`, a pure function to a
frozen result with `to_dict()`, the JSON contract. What its figures mean stands beside it as `TERMS`. The question that
it answers is a record in `app.questions`.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from runs.run import FactValue

Facts = Mapping[str, FactValue]
OPTION = "option"  # source of a fact that a question was asked with


class Result(Protocol):
    """An answer: frozen, with what it rests on in sentences, and the JSON contract."""

    @property
    def notes(self) -> tuple[str, ...]: ...

    def to_dict(self) -> dict[str, Any]: ...


def with_options(facts: Facts, options: Mapping[str, Any], names: tuple[str, ...]) -> Facts:
    """The facts, with those of `names` that an option gives taken from there: what is asked wins over what is known."""
    given = {n: FactValue(options[n], "declared", OPTION) for n in names if options.get(n) is not None}
    return {**facts, **given}


def fact(facts: Facts, name: str) -> Any:
    return facts[name].value if name in facts else None
