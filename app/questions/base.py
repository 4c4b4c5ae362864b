"""What a question is: one record, from which pages, API, command line, menus, links and docs are made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from analyzers.base import Facts, Result
from analyzers.findings.base import Answers
from app.menu import Page
from app.words import Table
from errors.options import Option
from runs.programs import Programs
from runs.tables import Tables

R = TypeVar("R", bound=Result)


@dataclass(frozen=True, kw_only=True)
class Question(Page, Generic[R]):
    """A question about a run, with its page.

    inputs    tables that its answer is made of: its page tells how to get those that a run lacks
    explains  accounts of the ledger that its page gives the reasons of, each with what it tells
    options   what can be varied
    analyze   (tables, facts, options) -> the answer, with `to_dict()`, the JSON contract. Pure
    join      the same where the answer rests on those of other questions about the same run, which come as a fourth
    opens     the same where it rests on the programs kept with the run, which come as a fourth
    verdict   the answer in one plain statement: the number, the largest loss, what it is worth
    table     the rows that `chipledger show` prints below it
    """

    inputs: tuple[str, ...] = ()
    explains: Mapping[str, str] = field(default_factory=dict, hash=False)
    options: tuple[Option, ...]
    analyze: Callable[[Tables, Facts, dict[str, Any]], R]
    verdict: Callable[[R], str]
    join: Callable[[Tables, Facts, dict[str, Any], Answers], R] | None = None
    opens: Callable[[Tables, Facts, dict[str, Any], Programs], R] | None = None
    table: Callable[[R], Table]

    def meaning(self, term: str) -> str:
        """What one of its terms means. Raises KeyError for one that it does not have: a defect."""
        return {t.name: t.meaning for t in self.terms}[term]


def described(question: Question[Any]) -> dict[str, Any]:
    """A question as JSON: what it is for, what may be asked, and what its figures mean."""
    return {
        "name": question.name,
        "aliases": list(question.aliases),
        "title": question.title,
        "asks": question.asks,
        "page": f"/{question.path}" if question.file else None,
        "kinds": {kind: list(tables) for kind, tables in question.about.items()},
        "inputs": list(question.inputs),
        "explains": dict(question.explains),
        "options": [o.to_dict() for o in question.options],
        "terms": [t.to_dict() for t in question.terms],
    }
