"""The job's steps and its calendar, worked out once for all questions that rest on them.

A stored run never changes, so both are kept by the state of its files, the facts they are judged by, and until when is
looked. Tables that lie in no run's folder are looked at anew each time.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Generic, TypeVar

from analyzers.base import Facts
from analyzers.time.calendar import Calendar, calendar
from analyzers.time.history import History, history
from runs.tables import ParquetTables, Tables

KEPT = 4  # of each: a page asks several questions of one run, a comparison of two; a million steps take some 100 MB
T = TypeVar("T")


def steps_taken(tables: Tables, facts: Facts, now_ns: int | None = None) -> History:
    """The steps, as `history` tells them."""
    key = _key(tables, facts, now_ns)
    found = _histories.get(key, lambda: history(tables, facts, now_ns))
    return replace(found, rows=found.rows.copy(deep=False))


def job_past(tables: Tables, facts: Facts, now_ns: int | None = None) -> tuple[History, Calendar | None]:
    """The steps, and the calendar; None where no input gives the job times of day."""
    past = steps_taken(tables, facts, now_ns)
    days = _calendars.get(_key(tables, facts, now_ns), lambda: calendar(tables, past, now_ns))
    return past, None if days is None else replace(days, steps=days.steps.copy(deep=False))


def _key(tables: Tables, facts: Facts, now_ns: int | None) -> Hashable:
    """None: nothing tells whether the tables are those of before."""
    if not isinstance(tables, ParquetTables):
        return None
    return tables.state, tuple(sorted((name, repr(known)) for name, known in facts.items())), now_ns


class _Kept(Generic[T]):
    """Values by key, the last KEPT of them. Two who ask for one at once wait for the same; what fails is not kept."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: OrderedDict[Hashable, T] = OrderedDict()
        self._working: dict[Hashable, threading.Lock] = {}

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        if key is None:
            return compute()
        with self._lock:
            working = self._working.setdefault(key, threading.Lock())
        try:
            with working:
                with self._lock:
                    if key in self._values:
                        self._values.move_to_end(key)
                        return self._values[key]
                value = compute()
                with self._lock:
                    self._values[key] = value
                    while len(self._values) > KEPT:
                        self._values.popitem(last=False)
                return value
        finally:
            with self._lock:
                if not working.locked():
                    self._working.pop(key, None)


_histories: _Kept[History] = _Kept()
_calendars: _Kept[Calendar | None] = _Kept()
