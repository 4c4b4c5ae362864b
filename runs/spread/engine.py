"""What an engine is given, what it gives, and the one function that every worker runs."""

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

from errors import InputError

ATTEMPTS = 4  # a task whose worker was lost is tried so often
ASK_S = 0.1  # how often a person is asked whether to go on


@dataclass(frozen=True, kw_only=True)
class Task:
    """A piece of work. `key`: what it is made of, as text; of two tasks of one key the answers are the same. `asked`:
    plain values. `weight`: bytes that it reads, for progress."""

    key: str
    asked: dict[str, Any]
    weight: int = 0


@dataclass(frozen=True, kw_only=True)
class Work:
    """What is done with tasks. `function`: `package.module:name`, called with what a task asks and the answer of
    `stamp`; `stamp`: the name of a function without arguments, which says as text what does the work: a worker where
    it says something else is refused."""

    function: str
    stamp: str


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of a task: its answer, or a sentence about what ended its worker again and again."""

    task: Task
    answer: Any = None
    problem: str = ""


class EngineError(InputError):
    """Nobody is there to do it, or not as it is asked: no fault of a file."""


class OtherVersionError(EngineError):
    """A worker is not of the version of whoever asks it."""


class Engine(Protocol):
    """Does work on tasks. Used as a context manager: leaving it ends what still runs."""

    @property
    def elsewhere(self) -> bool:
        """Whether its workers may be other machines."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None: ...

    def map(
        self, work: Work, tasks: Sequence[Task], check: Callable[[], None], report: Callable[[int], None]
    ) -> Iterator[Outcome]:
        """The outcome of each task, in their order. Few are under way at a time. `check` is called often and may raise;
        `report` is told the weight of all that was done so far. Raises EngineError."""
        ...


def named(function: str) -> Callable[..., Any]:
    """The function of a name. By name, so that this floor knows nothing of what is done on those above."""
    module, _, name = function.partition(":")
    return getattr(importlib.import_module(module), name)


def perform(work: Work, stamp: str, asked: dict[str, Any]) -> Any:
    """Do a task here, on a worker. Raises OtherVersionError where whoever asks is of another version."""
    if (own := named(work.stamp)()) != stamp:
        raise OtherVersionError(other_version(own, stamp), advice=SAME)
    return named(work.function)(asked)


SAME = "Start all workers from the same installation of Chipledger as the command."


def other_version(worker: str, asked: str) -> str:
    """The sentence about a worker that is of another version."""
    return f"a worker is of another version ({worker}; this is {asked})"
