"""A run that is removed at any instant of its being read: before the first look at its folder, the second, ..."""

import io
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.workspace import Workspace, workspace

LOOKS = (
    *((os, name) for name in ("stat", "lstat", "scandir", "listdir", "open", "access")),
    (io, "open"),
    *((pq, name) for name in ("read_schema", "read_metadata", "read_table")),
    (pa, "input_stream"),
)


class Looks:
    """Counts what looks at `folder` or below it; before the n-th look the run there is removed."""

    def __init__(self, folder: Path, n: int, remove: Callable[[], None]):
        self._folder, self._n, self._remove = str(folder), n, remove
        self.count = 0

    def look(self, at: object) -> None:
        if isinstance(at, str | os.PathLike) and os.fspath(at).startswith(self._folder):
            self.count += 1
            if self.count == self._n:
                self._remove()

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        for module, name in LOOKS:
            patch.setattr(module, name, self._watched(getattr(module, name)))
        started, spoken = subprocess.Popen.__init__, subprocess.Popen.communicate

        def starting(process: Any, *given: Any, cwd: object = None, **more: Any) -> None:
            self.look(cwd)
            process.place = cwd
            started(process, *given, cwd=cwd, **more)

        def speaking(process: Any, *given: Any, **more: Any) -> Any:
            self.look(process.place)  # started there, it waits for what it is asked
            return spoken(process, *given, **more)

        patch.setattr(subprocess.Popen, "__init__", starting)
        patch.setattr(subprocess.Popen, "communicate", speaking)

    def _watched(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def looking(*given: Any, **more: Any) -> Any:
            self.look(given[0] if given else None)
            return real(*given, **more)

        return looking


def removed_before_each_look(
    source: Path, name: str, scratch: Path, ask: Callable[[Workspace, str], Any], every: int = 1
) -> Iterator[Callable[[], Any]]:
    """For each look that `ask(place, run id)` takes at the run: a call of it in which the run is removed before that.
    The last is one in which it stays."""
    n, there = 1, True
    while there:
        folder = scratch / f"store-{n}"
        shutil.copytree(source, folder)
        place = workspace(str(folder))
        run = place.store.find(name)
        gone: list[str] = []

        def remove(place: Workspace = place, run_id: str = run.run_id, gone: list[str] = gone) -> None:
            gone.append(run_id)
            place.store.remove(run_id)

        looks = Looks(run.folder, n, remove)

        def asking(looks: Looks = looks, place: Workspace = place, run_id: str = run.run_id) -> Any:
            with pytest.MonkeyPatch.context() as patch:
                looks.watch(patch)
                return ask(place, run_id)

        yield asking
        there = bool(gone)
        shutil.rmtree(folder, ignore_errors=True)  # a thread of the reader may still close its files there
        n += every
