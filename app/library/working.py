"""The numbers of rows: kept in the registry, where a thread of this process puts those that lack. No drawing waits."""

import contextlib
import logging
import threading
import time
from collections.abc import Iterable
from dataclasses import replace

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
    price = extras.usd_per_chip_hour
    price = run.manifest.fact(PRICE) if price is None else price
    return f"{run.written.created_ns} {run.said.mark} {price} {answering()}"


class Numbers:
    """What was worked out of the runs of a store."""

    def __init__(self, place: Workspace, shelf: Shelf):
        self._place, self._shelf = place, shelf
        self._told: dict[str, tuple[str, Glimpse]] = {}
        self._read = False
        self._lock = threading.Lock()
        self._done: set[str] = set()  # since somebody asked
        self._wanted: dict[str, None] = {}
        self._worker: threading.Thread | None = None

    def filled(self, row: Row, key: str) -> Row:
        """A row with its numbers; one that is pending where they are not known yet."""
        if not self._read:
            self._read_all()
        kept = self._told.get(row.run_id)
        if kept is None or kept[0] != key:
            return replace(row, numbers={}, largest_loss=None, bar=(), under=UNDER_PENDING, spent="", pending=True)
        told = kept[1]
        shown = {"numbers": told.numbers, "largest_loss": told.largest_loss, "bar": told.bar, "under": told.under}
        return replace(row, **shown, spent=told.spent, pending=False)

    def _read_all(self) -> None:
        for run_id, (key, text) in self._shelf.glimpses().items():
            if (told := Glimpse.from_json(text)) is not None:
                self._told.setdefault(run_id, (key, told))
        self._read = True

    def done(self) -> set[str]:
        """Runs whose numbers came to be known since this was last asked."""
        with self._lock:
            done, self._done = self._done, set()
        return done

    def begin(self, run_ids: Iterable[str]) -> None:
        """Work these out in the background, before those that were asked for earlier."""
        with self._lock:
            first = dict.fromkeys(run_ids)
            self._wanted = {**first, **self._wanted}
            if self._worker is None:
                self._worker = threading.Thread(target=self._work, name="library numbers", daemon=True)
                self._worker.start()

    def _next(self) -> str | None:
        with self._lock:
            run_id = next(iter(self._wanted), None)
            if run_id is None:
                self._worker = None
            else:
                del self._wanted[run_id]
        return run_id

    def _work(self) -> None:
        while (run_id := self._next()) is not None:
            began = time.monotonic()
            with acting_as(SERVER):
                self.work_out(run_id)
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
        if self._told.get(run_id, ("",))[0] != key:
            self._told[run_id] = (key, self._glimpse(run, key))
        with self._lock:
            self._done.add(run_id)

    def _glimpse(self, run: Run, key: str) -> Glimpse:
        with contextlib.suppress(InputError):
            if (kept := self._shelf.glimpse(run.run_id, key)) and (told := Glimpse.from_json(kept)):
                return told  # another process did it
        try:
            told = glimpse_of(run, self._place.registry)
        except Exception:  # a defect of one analyzer hides no other run's numbers
            _log.exception("the numbers of run %s cannot be worked out", run.run_id)
            return NOT_TOLD
        with contextlib.suppress(InputError):  # a disk that is full: they are known as long as this process lives
            self._shelf.keep_glimpse(run.run_id, key, told.to_json())
        return told
