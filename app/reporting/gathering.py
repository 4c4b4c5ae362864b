"""The answers that a report is made of, asked as the pages ask them, with why where there is none."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from app.comparing.answer import Compared
from app.library.changes import FOLLOWED
from app.questions import QUESTIONS
from app.questions.asking import ask
from app.questions.base import Question
from app.questions.compiled import COMPILED
from app.questions.findings import FINDINGS
from app.questions.latency import LATENCY
from app.questions.ledger import LEDGER
from app.questions.ledger.words import losses
from app.questions.load import LOAD
from app.questions.memory import MEMORY
from app.questions.steps import STEPS
from app.workspace import Workspace
from errors import ChipledgerError
from errors import format as fmt
from runs.run import Run

LARGEST = 3  # losses that are told with what they rest on
OF_KIND: dict[str, tuple[Question[Any], ...]] = {"serving": (LATENCY, LOAD), "compiled": (COMPILED, MEMORY)}
"""What is told of a run of this kind besides findings and ledger; of any other its steps."""


@dataclass(frozen=True)
class Answered:
    """A question with its answer, or with why it has none (`result` is None then)."""

    question: Question[Any]
    result: Any
    why: str = ""

    @property
    def verdict(self) -> str:
        """All that the page says in words, what stands below its pictures too."""
        said = self.question.verdict(self.result)
        return getattr(said, "whole", str(said))


@dataclass(frozen=True)
class Loss:
    """An account of the ledger that moved nothing forward. `shown`: the question that explains it, None where this run
    has none."""

    account: str
    chip_seconds: float
    shown: Answered | None


@dataclass(frozen=True, kw_only=True)
class About:
    """A run with its answers. `own`: those of its kind, such as its steps; `live`: it is still running."""

    run: Run
    findings: Answered
    ledger: Answered
    own: tuple[Answered, ...]
    losses: tuple[Loss, ...]
    live: bool = False
    damage: str = ""
    tags: tuple[str, ...] = field(default=())

    @property
    def name(self) -> str:
        return self.run.manifest.name

    @property
    def answered(self) -> tuple[Answered, ...]:
        """Every question that has an answer here, once, in the order in which they are told."""
        asked = (self.findings, self.ledger, *self.own, *(one.shown for one in self.losses if one.shown))
        return tuple({a.question.name: a for a in asked if a.result is not None}.values())


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two runs with what is told of both. `loads`: of served runs, which load of each; None: all."""

    a: About
    b: About
    compared: Compared
    place: Workspace
    loads: tuple[str | None, str | None] = (None, None)


def about(run: Run, place: Workspace) -> About:
    """All that a report of this run rests on. Raises InputError where the run was removed meanwhile."""
    ledger = _asked(LEDGER, run, place)
    own = OF_KIND.get(run.manifest.kind, (STEPS,))
    return About(
        run=run,
        findings=_asked(FINDINGS, run, place),
        ledger=ledger,
        own=tuple(_asked(question, run, place) for question in own),
        losses=tuple(_losses(run, ledger, place)),
        live=still_running(run, place),
        damage=run.damage or "",
        tags=_tags(run, place),
    )


def pair(a: Run, b: Run, place: Workspace, load_a: str | None = None, load_b: str | None = None) -> Pair:
    """Raises QuestionError where nothing of the two can be compared."""
    compared = Compared(a, b, place, load_a, load_b)
    return Pair(a=about(a, place), b=about(b, place), compared=compared, place=place, loads=(load_a, load_b))


def still_running(run: Run, place: Workspace) -> bool:
    live = place.store.live.current(run.run_id)
    return live is not None and live.state_at(time.time_ns()) in FOLLOWED


def _asked(question: Question[Any], run: Run, place: Workspace) -> Answered:
    try:
        return Answered(question, ask(question, run, {}, place.registry))
    except ChipledgerError as e:
        return Answered(question, None, str(e))


def _losses(run: Run, ledger: Answered, place: Workspace) -> Iterable[Loss]:
    if ledger.result is None:
        return
    for account, chip_seconds in losses(ledger.result.ledger)[:LARGEST]:
        explains = next((q for q in QUESTIONS if account in q.explains and q.tells_of(run)), None)
        yield Loss(account, chip_seconds, None if explains is None else _asked(explains, run, place))


def _tags(run: Run, place: Workspace) -> tuple[str, ...]:
    from app.summary import tags_of

    return tuple(f"{k}={v}" if v else k for k, v in tags_of(run, place.registry.extras(run.run_id)).items())


def what(run: Run) -> str:
    """What the run is, in a line: as its page has it below its name."""
    from app.summary import chips_text, model_text

    manifest = run.manifest
    known = (chips_text(run), manifest.fact("topology"), model_text(run), manifest.fact("precision"))
    return " · ".join([str(k) for k in known if k] + [manifest.kind, f"added {fmt.date(manifest.created_ns)}"])
