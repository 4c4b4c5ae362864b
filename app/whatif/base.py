"""What every what-if is: one record, from which the command line, the HTTP API, its page and the docs are made."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from app.options import Pairs, from_query
from errors import QuestionError
from errors.nearest import did_you_mean
from errors.options import Option

if TYPE_CHECKING:
    from app.words import Table
    from app.workspace import Workspace


@dataclass(frozen=True)
class Words:
    """One plain statement, the rows below it, and what they rest on; or a `text` to copy, which stands alone."""

    verdict: str
    table: "Table"
    notes: tuple[str, ...] = ()
    text: str = ""


class Told(Protocol):
    """An answer: frozen, and able to say itself as JSON."""

    def to_dict(self) -> dict[str, Any]: ...


Asked = TypeVar("Asked")
Answer = TypeVar("Answer", bound=Told)


def _as_it_is(answer: Told) -> dict[str, Any]:
    return answer.to_dict()


@dataclass(frozen=True, kw_only=True)
class WhatIf(Generic[Asked, Answer]):
    """A question about a job that does not exist.

    name     in `whatif NAME` and `/api/whatif/NAME`
    title    above what is said of it in the docs
    help     what it answers, as it follows its name in a list
    asked    the frozen record of what is asked: a field for each option, with its default
    options  what can be given; those that are `local` exist on the command line alone
    answer   the answer from what is asked. The store is there where a run is named, else it may be None
    words    what a terminal prints
    told     the JSON contract, where its words are part of it
    page     the file of its page below `app/`; empty: none
    """

    name: str
    title: str
    help: str
    asked: type[Asked]
    options: tuple[Option, ...]
    answer: Callable[[Asked, "Workspace | None"], Answer]
    words: Callable[[Answer], Words]
    told: Callable[[Answer], dict[str, Any]] = _as_it_is
    page: str = ""

    def from_query(self, query: Pairs) -> Asked:
        """What an address asks. Raises QuestionError for what is unknown or cannot be."""
        return self.asked(**from_query(query, self.options))

    def run_of(self, asked: Asked) -> str | None:
        """The run that is named, if any."""
        return next((str(run) for o in self.options if o.of_run and (run := getattr(asked, o.name))), None)


def named(whatifs: Iterable[WhatIf[Any, Any]], name: str) -> WhatIf[Any, Any]:
    """The what-if of this name. Raises QuestionError where there is none."""
    whatifs = tuple(whatifs)
    for candidate in whatifs:
        if name == candidate.name:
            return candidate
    known = [w.name for w in whatifs]
    raise QuestionError(
        f"no what-if {name[:80]!r}", expected=f"one of {', '.join(known)}", advice=did_you_mean(name, known)
    )
