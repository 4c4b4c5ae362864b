"""The one place where a question is asked of a run.

Pages, HTTP API and command line all ask here, so the three can never disagree.
"""

import json
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from analyzers.base import Result, fact
from app.frameworks import frameworks_of
from app.programs import StoredPrograms
from app.questions.base import Question, R
from app.workspace import workspace
from errors import QuestionError
from errors.options import parse_options
from runs.kept import Answers
from runs.registry import Registry
from runs.run import FactValue, Run
from runs.tables import MemoryTables

CACHE_BYTES = 512 << 20
PRICE = "usd_per_chip_hour"
NEVER_RAN = "The run was simulated: it cannot tell what devices did inside a step, for there were none."


@dataclass(frozen=True)
class ModelSubject:
    """A model asked about without a run: its dimensions are all that is known. `model`: a name or a configuration."""

    name: str
    model: str | dict[str, Any] = field(repr=False)

    @property
    def facts(self) -> dict[str, FactValue]:
        basis = "published" if isinstance(self.model, str) else "declared"
        return {"model": FactValue(self.model, basis, "the question")}


Subject = Run | ModelSubject


def price_of(run: Run, registry: Registry) -> float | None:
    """Dollars per chip-hour: what a person entered for this run, else what its inputs declare, else None."""
    entered = registry.extras(run.run_id).usd_per_chip_hour
    return fact(run.manifest.facts, PRICE) if entered is None else entered


def ask(asked: Question[R], run: Subject, given: Mapping[str, Any], registry: Registry) -> R:
    """The answer to a question about a run, or about a model alone.

    A price that is not among the options given comes from the registry, then from the run's facts. Runs never
    change, so an answer is computed once for its run, question and options and then kept. It is shared: do not change
    it. Raises QuestionError for an unknown option and InputError for tables that cannot be read.
    """
    key, compute = _prepared(asked, run, given, registry)
    return _answers.get(key, compute)


def glimpse(asked: Question[R], run: Subject, registry: Registry) -> R | None:
    """The answer where it is known already; else it is begun in the background and None is returned.

    Raises the error where the question was asked and has no answer.
    """
    key, compute = _prepared(asked, run, {}, registry)
    if (known := _answers.known(key)) is not None:
        return known
    _background.submit(_answers.get, key, compute)
    return None


def known(asked: Question[R], run: Subject, registry: Registry) -> R | None:
    """The answer where it is there; None where it must be worked out. Raises the error where there is none."""
    return _answers.known(_prepared(asked, run, {}, registry)[0])


def _prepared(
    asked: Question[R], run: Subject, given: Mapping[str, Any], registry: Registry
) -> tuple[Any, Callable[[], R]]:
    """Under which key the answer is kept, and how it is computed."""
    options = parse_options(asked.options, given)
    if isinstance(run, ModelSubject):
        key = (json.dumps(run.model, sort_keys=True), asked.name, tuple(sorted(options.items())))
        return key, lambda: asked.analyze(MemoryTables({}), run.facts, options)
    if PRICE in options and options[PRICE] is None:
        options[PRICE] = price_of(run, registry)
    key = (run.writing, asked.name, tuple(sorted(options.items())), *_others_written(asked, run, options))
    return key, lambda: _of_run(asked, run, options, registry)


def _others_written(asked: Question[Any], run: Run, options: Mapping[str, Any]) -> list[Hashable]:
    """When the other runs that options name were written: one that is read anew is another."""
    named = [options[o.name] for o in asked.options if o.of_run and options[o.name] is not None]
    return [workspace(str(run.folder.parent.parent)).store.find(name).writing for name in named]


@dataclass(frozen=True)
class _Others:
    """Answers of the other questions about a run, at the same price: those that pages show and keep."""

    run: Run
    registry: Registry
    price: float | None

    def get(self, question: str) -> Result | None:
        found = self._ask(question)
        return None if isinstance(found, QuestionError) else found

    def why(self, question: str) -> str:
        found = self._ask(question)
        return found.what if isinstance(found, QuestionError) else ""

    @property
    def frameworks(self) -> tuple[str, ...]:
        return frameworks_of(self.run)

    def _ask(self, name: str) -> Result | QuestionError:
        from app.questions import question  # here: every record of it may be asked by another

        asked = question(name)
        priced = any(option.name == PRICE for option in asked.options)
        try:
            return ask(asked, self.run, {PRICE: self.price} if priced and self.price is not None else {}, self.registry)
        except QuestionError as e:
            return e


def _of_run(asked: Question[R], run: Run, options: Mapping[str, Any], registry: Registry) -> R:
    """The answer. Where there is none, nobody is asked for a profile of a job that never ran."""
    try:
        if asked.join is not None:
            others = _Others(run, registry, options.get(PRICE))
            return asked.join(run.tables, run.manifest.facts, dict(options), others)
        if asked.opens is not None:
            return asked.opens(run.tables, run.manifest.facts, dict(options), StoredPrograms(run))
        return asked.analyze(run.tables, run.manifest.facts, dict(options))
    except QuestionError as e:
        if run.manifest.simulated and "profile" in (e.advice or "").lower():
            raise QuestionError(e.what, where=e.where, expected=e.expected, advice=NEVER_RAN) from e
        raise


def answer_dict(run: Subject, result: Result) -> dict[str, Any]:
    """The JSON contract of an answer: `run_id` (or `model`), then what the result says."""
    who = {"model": run.name} if isinstance(run, ModelSubject) else {"run_id": run.run_id}
    return {**who, **result.to_dict()}


_answers = Answers(CACHE_BYTES)
_background = ThreadPoolExecutor(max_workers=1, thread_name_prefix="glimpse")
