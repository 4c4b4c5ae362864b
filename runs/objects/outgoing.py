"""Runs that were written here by processes without a network, and wait to be brought to their places.

<local>/outgoing/<random>/<run_id>/     the run, whole
<local>/outgoing/<random>/how.json      whether it takes the place of one before
<local>/outgoing.lock                   held by who brings them
"""

import contextlib
import fcntl
import json
import shutil
import uuid
from collections.abc import Generator
from pathlib import Path

from runs.durable import PRIVATE, sync, write_whole, writing
from runs.scratch import unlock

_HOW = "how.json"


class Outgoing:
    def __init__(self, folder: Path):
        self._folder, self._lock = folder, folder.with_name(f"{folder.name}.lock")
        self.mine: dict[str, Path] = {}  # the runs that this process put here, by id

    def put(self, run: Path, run_id: str, replace: bool) -> None:
        folder = self._folder / uuid.uuid4().hex
        with writing(folder):
            folder.mkdir(mode=PRIVATE, parents=True)
            write_whole(folder / _HOW, json.dumps({"replace": replace}))
            run.rename(folder / run_id)
            sync(folder)
        self.mine[run_id] = folder / run_id

    @contextlib.contextmanager
    def taken(self) -> Generator[list[tuple[Path, bool]]]:
        """(a run's folder, whether it takes the place of one before) of each, as they came; nobody else has them."""
        with contextlib.ExitStack() as stack:
            if self._folder.is_dir():
                with writing(self._lock):
                    lock = stack.enter_context(self._lock.open("ab"))
                with contextlib.suppress(OSError):  # a file system without locks
                    fcntl.flock(lock, fcntl.LOCK_EX)
                stack.callback(unlock, lock)
            yield self._all()

    def done(self, run: Path) -> None:
        shutil.rmtree(run.parent, ignore_errors=True)

    def _all(self) -> list[tuple[Path, bool]]:
        found: list[tuple[float, Path, bool]] = []
        with contextlib.suppress(OSError):
            for folder in self._folder.iterdir():
                with contextlib.suppress(OSError, ValueError):
                    replace = json.loads((folder / _HOW).read_bytes())["replace"] is True
                    found += [(run.stat().st_mtime, run, replace) for run in folder.iterdir() if run.is_dir()]
        return [(run, replace) for _, run, replace in sorted(found)]
