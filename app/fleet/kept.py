"""The runs of a store as a fleet has them, with the newest answers: columns that are brought up to date where a row of
the library is another."""

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any

import numpy as np

from analyzers.fleet import FleetAsked, FleetResult, fleet
from analyzers.fleet.base import FleetRun
from analyzers.fleet.chosen import Book, Chosen
from analyzers.fleet.parts import Parts
from analyzers.fleet.spent import Spent
from app.library.columns import Row
from app.library.rows import Numbers, found_ids, found_slots, library
from app.library.table import CHUNK, table
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
        gone = list[int]()
        for some in _by_block(list(changed), self._book.size):
            rows = self._rows([changed[slot][0] for slot in some])
            there = {slot: run_of(rows[run_id]) for slot in some if (run_id := changed[slot][0]) in rows}
            self._book.put(there)
            self._serials[list(there)] = [changed[slot][1] for slot in there]
            gone.extend(slot for slot in some if slot not in there)
        return self._book.chosen(slots[~np.isin(slots, gone)] if gone else slots)

    def _rows(self, run_ids: Sequence[str]) -> dict[str, Row]:
        """Those of runs that are still there."""
        kept, chunks = table(self._place), range(0, len(run_ids), CHUNK)
        return {row.run_id: row for at in chunks for row in kept.made(run_ids[at : at + CHUNK])}


def _by_block(slots: Sequence[int], size: int) -> Iterator[list[int]]:
    """Those of one block together: it is made anew once."""
    return (list(some) for _, some in groupby(slots, lambda slot: slot // size))


def run_of(row: Row) -> FleetRun:
    """A row of the library as a fleet's run."""
    return FleetRun(
        run_id=row.run_id,
        name=row.name,
        kind=row.kind,
        simulated=row.simulated,
        damaged=row.problem is not None or not row.readable,
        pending=row.pending,
        created_ns=row.created_ns or 0,
        chip=row.chip or "",
        chips=row.chips,
        model=row.model or "",
        group=row.group,
        job=row.job,
        tags=row.tags,
        goodput=row.numbers.get("goodput"),
        mfu=row.numbers.get("mfu"),
        archived=row.archived,
        demo=row.demo,
        live=row.live is not None and row.live.state_at(time.time_ns()) in ("following", "failing"),
        spent=Spent.from_json(row.spent) if row.spent else None,
    )
