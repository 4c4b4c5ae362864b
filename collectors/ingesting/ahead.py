"""Several large files of one run read at once, each by a process of its own.

What they hold comes in the order of the files, as if they had been read one after another: the tables are the same to
the last byte. Processes are ahead of the one that writes by no more files than there are processes, and what they read
waits on disk, in the folder of the ingest, so that memory does not grow with the number of files.
"""

import contextlib
import json
import os
import pickle
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, TimeoutError
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from collectors.base import Item
from collectors.ingesting import ahead_child
from collectors.ingesting.unpack import BROKEN, SafeSource
from errors import InputError
from runs.machine import processors
from runs.spread.ending import end

LEAST_BYTES = 8 << 20  # a smaller file is read sooner than a process starts
MOST_PROCESSES = 8  # one thread writes for all: it keeps up with about as many
COMMAND = [sys.executable, "-m", ahead_child.__name__]
_ROOT = Path(__file__).parents[2]
_ASK_S = 0.1  # how often a person is asked whether to go on


@dataclass
class Reading:
    """A file that is read ahead: which, by what, where its items go, and how much of it was read so far."""

    source: SafeSource
    collector: str
    out: Path
    bytes_read: int = 0
    ended: Future[None] = field(default_factory=Future)


class Ahead:
    """Readers of those of `files` that are worth a process, where there are several; `check` may raise at any time.

    Used as a context manager: leaving it ends every process.
    """

    def __init__(self, files: Sequence[tuple[SafeSource, str]], folder: Path, check: Callable[[], None]):
        large = [f for f in files if type(f[0]) is SafeSource and _size(f[0]) >= LEAST_BYTES]
        self._processes = min(len(large), MOST_PROCESSES, processors())
        if self._processes < 2:
            large = []
        self._all = {s.index: Reading(s, name, folder / f"items-{s.index}") for s, name in large}
        self._waiting = deque(self._all.values())
        self._check = check
        self._pool = ThreadPoolExecutor(max(1, self._processes), thread_name_prefix="ahead")
        self._own = threading.local()
        self._children: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        for _ in range(self._processes):
            self._next()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._waiting.clear()
        end(self._children, self._pool)

    def has(self, source: SafeSource) -> bool:
        """Whether the file is read ahead; else whoever asks reads it."""
        return source.index in self._all

    def bytes_read(self, source: SafeSource) -> int:
        """How many bytes of the file were read so far, whoever reads it."""
        return self._all[source.index].bytes_read if self.has(source) else source.bytes_read()

    def items(self, source: SafeSource, report: Callable[[int], None]) -> Iterator[Item]:
        """What the file holds; `report` is told how many bytes of it were read. To be asked in the order of the
        files. Raises InputError as reading it here would."""
        file = self._all[source.index]
        while True:
            with contextlib.suppress(TimeoutError):
                file.ended.result(_ASK_S)
                break
            self._check()
            report(file.bytes_read)
        self._next()
        try:
            yield from _kept(file)
        finally:
            file.out.unlink(missing_ok=True)

    def _next(self) -> None:
        if self._waiting:
            self._pool.submit(self._read, self._waiting.popleft())

    def _read(self, file: Reading) -> None:
        """On a thread for each process: has the file read there."""
        try:
            child = self._child()
            asked = {"path": str(file.source.path), "name": file.source.name, "index": file.source.index}
            self._ask(child, asked | {"collector": file.collector, "out": str(file.out)}, file)
            file.ended.set_result(None)
        except BaseException as e:
            file.ended.set_exception(e)

    def _child(self) -> subprocess.Popen[str]:
        child = getattr(self._own, "child", None)
        if child is None or child.poll() is not None:
            child = subprocess.Popen(
                COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT, env=_environment()
            )
            self._children.append(child)
            self._own.child = child
        return child

    def _ask(self, child: subprocess.Popen[str], asked: dict, file: Reading) -> None:
        with contextlib.suppress(BrokenPipeError):
            _pipe(child.stdin).write(json.dumps(asked) + "\n")
            _pipe(child.stdin).flush()
        for line in _pipe(child.stdout):
            told = json.loads(line)
            if "done" in told:
                return
            file.bytes_read = told["read"]
        code = child.wait()
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        raise InputError(
            f"the process that read it ended ({how})",
            where=file.source.name,
            advice="Where memory was short, ingest fewer files at a time or give it more",
        )


def _size(source: SafeSource) -> int:
    with contextlib.suppress(*BROKEN):
        return source.path.stat().st_size
    return 0


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None  # every child is started with both
    return pipe


def _environment() -> dict[str, str]:
    """As here, but the project is found where this one was, whatever folder it was started in."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))}


def _kept(file: Reading) -> Iterator[Item]:
    with file.out.open("rb") as f:
        while (item := pickle.load(f)) is not None:
            if isinstance(item, dict):
                raise InputError(item.pop("what"), **item)
            yield item
