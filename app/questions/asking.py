"""The one place where a name such as `ledger` meets its analyzer and its options.

Pages, HTTP API and command line all ask here, so the three can never disagree.
"""

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from analyzers import ANALYZERS
from analyzers.base import Analyzer, Result, fact
from errors import QuestionError
from errors.options import parse_options
from runs.registry import Registry
from runs.run import FactValue, Run
from runs.tables import MemoryTables

CACHE_BYTES = 512 << 20
NAMES: tuple[str, ...] = tuple(a.NAME for a in ANALYZERS)
PRICE = "usd_per_chip_hour"


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


def analyzer(name: str) -> Analyzer:
    """The analyzer of this name. Raises QuestionError where there is none."""
    for candidate in ANALYZERS:
        if name == candidate.NAME:
            return candidate
    raise QuestionError(f"no analysis {name!r}", expected=f"one of {', '.join(NAMES)}")


def price_of(run: Run, registry: Registry) -> float | None:
    """Dollars per chip-hour: what a person entered for this run, else what its inputs declare, else None."""
    entered = registry.extras(run.run_id).usd_per_chip_hour
    return fact(run.manifest.facts, PRICE) if entered is None else entered


def ask(run: Subject, name: str, given: Mapping[str, Any], registry: Registry) -> Result:
    """The answer to question `name` about a run, or about a model alone.

    A price that is not among the options given comes from the registry, then from the run's facts. Runs never
    change, so an answer is computed once for its run, name and options and then kept. It is shared: do not change
    it. Raises QuestionError for an unknown name or option and InputError for tables that cannot be read.
    """
    key, compute = _question(run, name, given, registry)
    return _answers.get(key, compute)


def glimpse(run: Subject, name: str, registry: Registry) -> Result | None:
    """The answer where it is known already; else it is begun in the background and None is returned.

    Raises the error where the question was asked and has no answer.
    """
    key, compute = _question(run, name, {}, registry)
    if (known := _answers.known(key)) is not None:
        return known
    _background.submit(_answers.get, key, compute)
    return None


def _question(
    run: Subject, name: str, given: Mapping[str, Any], registry: Registry
) -> tuple[Any, Callable[[], Result]]:
    asked = analyzer(name)
    options = parse_options(asked.OPTIONS, given)
    if isinstance(run, ModelSubject):
        key = (json.dumps(run.model, sort_keys=True), name, tuple(sorted(options.items())))
        return key, lambda: asked.analyze(MemoryTables({}), run.facts, options)
    if PRICE in options and options[PRICE] is None:
        options[PRICE] = price_of(run, registry)
    key = (run.writing, name, tuple(sorted(options.items())))
    return key, lambda: asked.analyze(run.tables, run.manifest.facts, options)


def answer_dict(run: Subject, result: Result) -> dict[str, Any]:
    """The JSON contract of an answer: `run_id` (or `model`), then what the result says."""
    who = {"model": run.name} if isinstance(run, ModelSubject) else {"run_id": run.run_id}
    return {**who, **result.to_dict()}


class Answers:
    """Least recently used answers, bounded by the bytes of the tables in them.

    Two sessions that ask the same at once compute it once. That a question has no answer is kept like an answer; any
    other error is known until it is asked again, so that who only looks does not ask for ever.
    """

    def __init__(self, max_bytes: int):
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[Any, Future] = OrderedDict()
        self._bytes: dict[Any, int] = {}  # of the answers that are there: measured once, not at every new answer

    def known(self, key: Any) -> Any:
        """The answer if it is there, else None. Raises the error where there is none to be had."""
        with self._lock:
            future = self._kept.get(key)
        return future.result() if future is not None and future.done() else None

    def get(self, key: Any, compute: Callable[[], Any]) -> Any:
        with self._lock:
            future = self._kept.get(key)
            mine = future is None or _may_be_gone(future)
            if mine:
                future = self._kept[key] = Future()
            self._kept.move_to_end(key)
        if mine:
            try:
                future.set_result(compute())
            except BaseException as e:
                future.set_exception(e)
            self._make_room(key, _size(future))
        return future.result()

    def _make_room(self, newest: Any, size: int) -> None:
        """Enter the newest answer's bytes and let go of the answers not asked for longest."""
        with self._lock:
            if newest in self._kept:
                self._bytes[newest] = size
            total = sum(self._bytes.values())
            for key in [k for k in self._kept if k in self._bytes]:
                if total <= self._max_bytes or key == newest:
                    break
                total -= self._bytes.pop(key)
                del self._kept[key]


def _may_be_gone(future: Future) -> bool:
    """Whether it failed by what may be otherwise the next time: a damaged file, a full disk, a defect."""
    return future.done() and future.exception() is not None and not isinstance(future.exception(), QuestionError)


def _size(future: Future) -> int:
    """Bytes that an answer holds: its frames, and a flat 20 kB for the rest."""
    result = None if future.exception() else future.result()
    values = vars(result).values() if hasattr(result, "__dict__") else ()
    return 20_000 + sum(int(v.memory_usage().sum()) for v in values if isinstance(v, pd.DataFrame))


_answers = Answers(CACHE_BYTES)
_background = ThreadPoolExecutor(max_workers=1, thread_name_prefix="glimpse")
