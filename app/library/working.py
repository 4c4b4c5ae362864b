"""The numbers of rows: kept in the registry, where a thread of this process puts those that lack. No drawing waits."""

import contextlib
import logging
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.identity.asking import acting_as
from app.identity.base import SERVER
from app.library.answers import Glimpse, answering, glimpse_of
from app.library.columns import Row
from app.questions.asking import PRICE
from app.workspace import Workspace
from errors import ChipledgerError, InputError
from runs.registry import Extras
from runs.run import Run
from runs.shelf import Shelf

UNDER_PENDING = "being computed"
NOT_TOLD = Glimpse(under="not told")
_REST = 0.5  # of the time that one run took, before the next: pages come first
_log = logging.getLogger(__name__)


def key_of(run: Run, extras: Extras) -> str:
    """What the numbers of a run are kept by: when it was written, what was said of it, its price, and what answers."""
    return _key(run.written.created_ns, run.said.mark, extras, run.manifest.fact(PRICE))


def key_of_told(told: Mapping[str, Any], extras: Extras) -> str:
    """The same of what is told of a run."""
    return _key(told["created_ns"], told["mark"], extras, told["facts_price"])


def _key(created_ns: int, mark: str, extras: Extras, price: Any) -> str:
    price = price if extras.usd_per_chip_hour is None else extras.usd_per_chip_hour
    return f"{created_ns} {mark} {price} {answering()}"


class Numbers:
    """What was worked out of the runs of a store."""

    def __init__(self, place: Workspace, shelf: Shelf):
        self._place, self._shelf = place, shelf
        self._unkept: dict[str, tuple[str, Glimpse]] = {}  # what the registry could not keep
        self._lock = threading.Lock()
        self._done: set[str] = set()  # since somebody asked
        self._first: dict[str, None] = {}  # those that somebody looks at
        self._later: dict[str, None] = {}
        self._more: Sequence[str] = ()  # what `_later` was made of
        self._worker: threading.Thread | None = None

    def kept(self, run_ids: Collection[str]) -> dict[str, tuple[str, str]]:
        """What is kept of these runs: (what it was worked out from, what it tells)."""
        return self._shelf.glimpses(run_ids)

    def filled(self, row: Row, key: str, kept: Mapping[str, tuple[str, str]]) -> Row:
        """A row with its numbers; one that is pending where they are not known yet. `kept`: as `kept` told it."""
        told = self._told(row.run_id, key, kept)
        if told is None:
            return row if not row.readable else replace(row, under=UNDER_PENDING, pending=True)
        shown = {"numbers": told.numbers, "largest_loss": told.largest_loss, "bar": told.bar, "under": told.under}
        return replace(row, **shown, spent=told.spent, pending=False)

    def _told(self, run_id: str, key: str, kept: Mapping[str, tuple[str, str]]) -> Glimpse | None:
        mine, known = self._unkept.get(run_id), kept.get(run_id)
        if mine is not None and mine[0] == key:
            return mine[1]
        return Glimpse.from_json(known[1]) if known is not None and known[0] == key else None

    def unkept(self) -> list[str]:
        """Runs whose numbers this process alone knows."""
        return list(self._unkept)

    def done(self) -> set[str]:
        """Runs whose numbers came to be known since this was last asked."""
        with self._lock:
            done, self._done = self._done, set()
        return done

    def begin(self, first: Iterable[str], more: Sequence[str]) -> None:
        """Work these out in the background, before those that were asked for earlier; `more` after the first, for as
        long as they are the same object they are asked for once."""
        with self._lock:
            self._first = {**dict.fromkeys(first), **self._first}
            if more is not self._more:
                self._more, self._later = more, dict.fromkeys(more)
            elif not self._later and self._worker is None:
                self._later = dict.fromkeys(more)
            if self._worker is None:
                self._worker = threading.Thread(target=self._work, name="library numbers", daemon=True)
                self._worker.start()

    def _next(self) -> str | None:
        with self._lock:
            wanted = self._first or self._later
            run_id = next(iter(wanted), None)
            if run_id is None:
                self._worker = None
            else:
                self._first.pop(run_id, None)
                self._later.pop(run_id, None)
        return run_id

    def _work(self) -> None:
        while (run_id := self._next()) is not None:
            began = time.monotonic()
            try:
                with acting_as(SERVER):
                    self.work_out(run_id)
            except Exception:  # such as a disk that is away: the other runs' numbers are asked for all the same
                _log.exception("the numbers of run %s cannot be worked out now", run_id)
            time.sleep(_REST * (time.monotonic() - began))

    def work_out(self, run_id: str) -> None:
        """Work out the numbers of a run, where they are not known. Nothing where it is gone."""
        try:
            run = self._place.store.get(run_id)
            if run is None:
                return
            key = key_of(run, self._place.registry.extras(run_id))
        except ChipledgerError:  # damaged: its row says so
            return
        known = self._unkept.get(run_id)
        if known is None or known[0] != key:
            self._keep(run, key)
        with self._lock:
            self._done.add(run_id)

    def _keep(self, run: Run, key: str) -> None:
        with contextlib.suppress(InputError):
            if (kept := self._shelf.glimpse(run.run_id, key)) and Glimpse.from_json(kept):
                self._unkept.pop(run.run_id, None)
                return  # another process did it, or this one before
        try:
            told = glimpse_of(run, self._place.registry)
        except Exception:  # a defect of one analyzer hides no other run's numbers
            _log.exception("the numbers of run %s cannot be worked out", run.run_id)
            self._unkept[run.run_id] = key, NOT_TOLD
            return
        self._unkept[run.run_id] = key, told
        with contextlib.suppress(InputError):  # a disk that is full: they are known as long as this process lives
            self._shelf.keep_glimpse(run.run_id, key, told.to_json())
            del self._unkept[run.run_id]
