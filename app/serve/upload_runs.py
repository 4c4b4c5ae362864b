"""Which runs were made of an upload: beside it lies a file of their ids, locked while it is read.

<uploads>/<upload_id>.runs   an id a line, in the order in which the runs were made
"""

import contextlib
import fcntl
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from app.identity.asking import acting_as
from app.identity.base import SERVER
from app.workspace import Workspace
from errors import InputError
from runs.durable import append_line, writing
from runs.run import Run
from runs.scratch import unlock

RUNS = ".runs"
ID = re.compile(r"[0-9a-f]{32}")


class Made:
    """The runs of a workspace that were made of uploads; none without one."""

    def __init__(self, place: Workspace | None):
        self._place = place

    def run_of(self, upload: Path) -> str | None:
        """A run that was made of an upload, if there is one still: in the store, or in its bin."""
        if self._place is None:
            return None
        try:
            ids = noted(upload).read_text().split()
        except OSError:
            ids = self._runs_of_files(upload)
        with acting_as(SERVER):  # it is kept for its run, whoever sees that
            return next((i for i in ids if self._place.store.kept(i)), None)

    def _runs_of_files(self, upload: Path) -> list[str]:
        """Runs one of whose inputs is remembered to lie in an upload."""
        if self._place is None:
            return []
        there = self._place.registry.files_below(upload)
        store = self._place.store
        with acting_as(SERVER):
            runs = [*store.runs(), *(b.run for b in store.binned())]
        return [r.run_id for r in runs if any(s["sha256"] in there for s in _sources(r))]


def noted(upload: Path) -> Path:
    """The file of the runs that were made of an upload."""
    return upload.with_name(upload.name + RUNS)


@contextlib.contextmanager
def in_use(paths: Iterable[Path], uploads_folder: Path) -> Iterator[None]:
    """While files are read: uploads among them can be neither discarded nor swept."""
    with contextlib.ExitStack() as held:
        for upload in _uploads_of(paths, uploads_folder):
            with contextlib.suppress(OSError):  # of an earlier version, or a disk that cannot be written
                runs = held.enter_context(noted(upload).open("rb"))
                fcntl.flock(runs, fcntl.LOCK_SH)
                held.callback(unlock, runs)
        yield


def note_run(paths: Iterable[Path], uploads_folder: Path, run_id: str) -> None:
    """Note that a run was made of the uploads among these files. Raises InputError where that cannot be written."""
    for upload in _uploads_of(paths, uploads_folder):
        with writing(upload):
            append_line(noted(upload), run_id)


def _uploads_of(paths: Iterable[Path], uploads_folder: Path) -> set[Path]:
    root = uploads_folder.resolve()
    below = (p.resolve().relative_to(root).parts for p in paths if p.resolve().is_relative_to(root))
    return {uploads_folder / parts[0] for parts in below if parts and ID.fullmatch(parts[0])}


def _sources(run: Run) -> list[dict[str, Any]]:
    """The inputs of a run; none of one that cannot be read."""
    try:
        return run.manifest.sources
    except InputError:
        return []
