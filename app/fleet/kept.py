"""The runs of a store as a fleet has them, with the newest answers: columns that are brought up to date where a row of
the library is another."""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from analyzers.fleet import FleetAsked, FleetResult, fleet
from analyzers.fleet.chosen import Book, Chosen
from analyzers.fleet.laying import laid_out
from analyzers.fleet.parts import Parts
from app.library.rows import Numbers, found_ids, found_slots, library
from app.library.table import table
from app.workspace import Workspace

MOST_ANSWERS = 8  # that are kept, with what they were added up from


@dataclass(frozen=True)
class _Answer:
    """What was told of the runs in these slots, as long as their rows have these serials."""

    slots: np.ndarray
    serials: np.ndarray
    result: FleetResult
    parts: Parts

    def holds(self, slots: np.ndarray, serials: np.ndarray) -> bool:
        return np.array_equal(self.slots, slots) and np.array_equal(self.serials, serials)


@cache
def kept_fleet(place: Workspace) -> "KeptFleet":
    """That of a store, one in a process."""
    return KeptFleet(place)


class KeptFleet:
    """Whoever asks takes turns: of many who ask at once one brings the runs up to date."""

    def __init__(self, place: Workspace):
        self._place, self._lock = place, threading.Lock()
        self._book = Book()
        self._serials = np.zeros(0, dtype=np.int64)  # by slot, of the row that was put there
        self._answers: OrderedDict[Any, _Answer] = OrderedDict()

    def ask(self, search: str, asked: FleetAsked, numbers: Numbers) -> FleetResult:
        """The fleet of what a search finds; the same answer as long as no run is another."""
        self._work_out(search, numbers)
        question = search, asked, self._place.store.hidden()
        with self._lock:
            runs, before = self._up_to_date(search), self._answers.get(question)
            serials = self._serials[runs.slots]
            if before is not None and before.holds(runs.slots, serials):
                return before.result
            parts = Parts() if before is None else before.parts
            result = fleet(runs, asked, kept=parts)
            self._answers[question] = _Answer(runs.slots, serials, result, parts)
            self._answers.move_to_end(question)
            while len(self._answers) > MOST_ANSWERS:
                self._answers.popitem(last=False)
            return result

    def runs(self, search: str, numbers: Numbers) -> Chosen:
        """What a search finds, archived runs too: their chips were held all the same."""
        self._work_out(search, numbers)
        with self._lock:
            return self._up_to_date(search)

    def _work_out(self, search: str, numbers: Numbers) -> None:
        library(self._place, search, archived=True, limit=0, numbers=numbers)
        if numbers == "now":
            table(self._place).work_out_of(found_ids(self._place, search, archived=True, pending=True))

    def _up_to_date(self, search: str) -> Chosen:
        slots, changed = found_slots(self._place, search, self._serials)
        if len(slots) and (most := int(slots.max())) >= len(self._serials):
            self._serials = np.append(self._serials, np.zeros(2 * most + 1 - len(self._serials), dtype=np.int64))
        gone = np.zeros(0, dtype=np.int64)
        for some in _by_block(changed.slots, self._book.size):
            gone = np.append(gone, self._lay(changed.slots[some], changed.run_ids[some], changed.serials[some]))
        return self._book.chosen(slots[~np.isin(slots, gone)] if len(gone) else slots)

    def _lay(self, slots: np.ndarray, run_ids: Sequence[str], serials: np.ndarray) -> np.ndarray:
        """Put runs of one block into their slots; those of runs that are gone by now."""
        ids, known, spent = table(self._place).laid(run_ids)
        there = np.isin(run_ids, ids) if len(ids) < len(run_ids) else np.ones(len(ids), dtype=bool)
        if ids:
            self._book.lay(slots[there].tolist(), laid_out(known, spent))
        self._serials[slots[there]] = serials[there]
        return slots[~there]


def _by_block(slots: np.ndarray, size: int) -> Iterator[slice]:
    """Where those of one block stand, which are in order: it is made anew once."""
    edges = [0, *(np.flatnonzero(np.diff(slots // size)) + 1).tolist(), len(slots)]
    return (slice(a, b) for a, b in pairwise(edges) if b > a)
