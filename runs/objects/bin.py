"""The bin of a store of objects. Nothing is moved there: the index says that a run lies in the bin, and the folder in
which it is known here moves."""

import contextlib
import os
import shutil
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path

from runs.bin import Bin
from runs.derived import forget
from runs.objects.index import BIN, REMOVE, RESTORE, Happened
from runs.run import MANIFEST
from runs.scratch import Held

Append = Callable[[Callable[[], Happened | None]], Happened | None]


class ObjectBin(Bin):
    """`append` tells the index; `mark` says which writing of a run lies in a folder; `vanish` takes away the objects
    of a run, around what it is given, which says that it is gone."""

    def __init__(
        self,
        root: Path,
        runs_folder: Path,
        hold: Callable[[], Held],
        *,
        append: Append,
        mark: Callable[[Path], str],
        vanish: Callable[[Path, Callable[[], bool]], bool],
    ):
        super().__init__(root, runs_folder, hold)
        self._append, self._mark, self._vanish = append, mark, vanish
        self._quiet = threading.local()

    @property
    def is_still(self) -> bool:
        """Whether this thread keeps others from moving runs: then nothing new is done here either."""
        return bool(getattr(self._quiet, "depth", 0))

    @contextlib.contextmanager
    def still(self) -> Generator[None]:
        self._quiet.depth = getattr(self._quiet, "depth", 0) + 1
        try:
            with super().still():
                yield
        finally:
            self._quiet.depth -= 1

    def put(self, run_id: str) -> bool:
        return self._append(lambda: self._told(BIN, run_id, self._runs)) is not None

    def restore(self, run_id: str) -> bool:
        return self._append(lambda: self._told(RESTORE, run_id, self.folder)) is not None

    def remove(self, run_id: str) -> bool:
        return self._vanishing(run_id, 0.0)

    def _gone(self, run_id: str, older_than_s: float) -> bool:
        return self._vanishing(run_id, older_than_s)

    def _vanishing(self, run_id: str, older_than_s: float) -> bool:
        def due() -> bool:
            since = self.folder / run_id
            return self.has(run_id) and time.time() - since.stat().st_mtime >= older_than_s

        def tell() -> bool:
            return self._append(lambda: self._told(REMOVE, run_id, self.folder) if due() else None) is not None

        return due() and self._vanish(self.folder / run_id, tell)

    def _told(self, do: str, run_id: str, folder: Path) -> Happened | None:
        if not self._is(folder, run_id):
            return None
        return Happened(do=do, run_id=run_id, mark=self._mark(folder / run_id), at_ns=time.time_ns(), at=folder.name)

    def apply(self, entry: Happened) -> None:
        """Do here what happened."""
        run_id = entry.run_id
        in_runs, in_bin = self._runs / run_id, self.folder / run_id
        with self._moving(in_runs):
            if entry.do == BIN and self._is(self._runs, run_id):
                self._emptied(in_runs)
                if self.has(run_id):
                    self._drop(in_bin)
                in_runs.rename(in_bin)
                os.utime(in_bin)  # when it is known here: the clock of who put it there may be wrong
            elif entry.do == RESTORE and self.has(run_id):
                in_bin.rename(in_runs)
            elif entry.do == REMOVE and self._is(self.folder.parent / entry.at, run_id):
                self._drop(self.folder.parent / entry.at / run_id)
        if entry.do != RESTORE:
            forget(self.folder.parent, run_id)

    def drop(self, run_id: str) -> None:
        """Of a run that was committed again nothing lies here any more."""
        if self.has(run_id):
            with self._moving(self.folder / run_id):
                self._drop(self.folder / run_id)

    @staticmethod
    def _emptied(folder: Path) -> None:
        """Files that were fetched go: who restores the run fetches them again."""
        for path in folder.iterdir():
            if path.name != MANIFEST:
                shutil.rmtree(path, ignore_errors=True)
