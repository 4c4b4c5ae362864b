"""The bundled runs, read once for a whole session: its workers share a store to which nobody writes again."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cli.commands.demo import load
from collectors.ingest import ingest
from runs.run import Run
from runs.store import Store

RUNS = Path(__file__).parents[1] / "reference" / "runs"


@contextlib.contextmanager
def _shared(folders: pytest.TempPathFactory, name: str) -> Iterator[Path]:
    """A folder of the session, whichever worker asks; one at a time is inside."""
    root = folders.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent  # a worker's own folder lies in that of the session
    folder = root / f"shared-{name}"
    folder.mkdir(exist_ok=True)
    with open(root / f"shared-{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def bundled(folders: pytest.TempPathFactory, name: str) -> Run:
    """A bundled run as ingest makes it of its files, to look at only: a test that changes a run makes its own."""
    with _shared(folders, name) as folder:
        store = Store(folder / "store")
        told = folder / "run_id"
        if not told.exists():
            told.write_text(ingest([RUNS / name], store).run_id)
        return store.get(told.read_text())


def demo_store(folders: pytest.TempPathFactory) -> Path:
    """A store of the caller's own as `chipledger demo` leaves it, with all bundled runs."""
    own = folders.mktemp("demo") / "store"
    with _shared(folders, "demo") as folder:
        whole = folder / "whole"
        if not whole.exists():
            load(str(folder / "store"))
            whole.touch()
        shutil.copytree(folder / "store", own)
    return own
