"""What every what-if shares: the shape of its module, and how it is asked over HTTP.

A what-if is a module in this folder, listed once in `app.whatif.WHATIFS`, with:

    NAME               its name in `whatif NAME` and in `/api/whatif/NAME`
    HELP               the question it answers
    arguments(parser)  its options, all of them `--name value` with numbers or names: the server takes no file
    answer(args, place)  -> a frozen result with `to_dict()`, the JSON contract; `place`: the store, if a run is named
    words(result)      -> Words, what a terminal prints
"""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from errors import QuestionError
from errors.numbers import read_plainly
from errors.options import once_each

if TYPE_CHECKING:
    from app.words import Table
    from app.workspace import Workspace


@dataclass(frozen=True)
class Words:
    """One plain statement, the rows below it, and what they rest on."""

    verdict: str
    table: "Table"
    notes: tuple[str, ...] = ()


class WhatIf(Protocol):
    NAME: str
    HELP: str

    def arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def answer(self, args: argparse.Namespace, place: "Workspace | None") -> Any: ...

    def words(self, result: Any) -> Words: ...


class _Query(argparse.ArgumentParser):
    """Reads a query as the command line reads its options; says what is wrong as our other errors do."""

    def error(self, message: str) -> NoReturn:
        raise QuestionError(message)


def named(whatifs: Sequence[WhatIf], name: str) -> WhatIf:
    """The what-if of this name. Raises QuestionError where there is none."""
    for candidate in whatifs:
        if name == candidate.NAME:
            return candidate
    raise QuestionError(f"no what-if {name!r}", expected=f"one of {', '.join(w.NAME for w in whatifs)}")


def from_query(asked: WhatIf, query: Mapping[str, str] | Iterable[tuple[str, str]]) -> argparse.Namespace:
    """The options from `save_s=60&mttf_s=10800`, as pairs or by name; empty values count as not given.

    Raises QuestionError for one that is unknown, cannot be, or stands there twice where once is meant.
    """
    parser = _Query(prog=asked.NAME, add_help=False, allow_abbrev=False)
    read_plainly(parser)
    asked.arguments(parser)
    known = {a.option_strings[0][2:].replace("-", "_"): a for a in parser._actions}
    pairs = [(k.replace("-", "_"), v) for k, v in (query.items() if isinstance(query, Mapping) else query)]
    once_each(pairs, known, {n for n, a in known.items() if isinstance(a, argparse._AppendAction)})
    return parser.parse_args([f"--{k.replace('_', '-')}={v}" for k, v in pairs if v != ""])
