"""A Dask cluster of processes on this machine's loopback, started and ended by whoever measures or tests with it."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).resolve().parents[1]
STARTS_S = 60.0
_AT = re.compile(r"Scheduler at:\s+(tcp://\S+)")
_REGISTERED = re.compile(r"Registered to:")


class DaskCluster:
    """A scheduler and so many workers, each of one thread and at most `memory` of memory, below `folder`. A worker
    that is killed is started anew by its nanny."""

    def __init__(self, folder: Path, workers: int, memory: str = "1GiB", environment: dict[str, str] | None = None):
        self._folder, self._workers, self._memory = folder, workers, memory
        self._environment = {**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})}
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            left = ("--idle-timeout", "600s")  # where whoever started it was killed
            self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", *left)
            self.address = self._said("scheduler", _AT)
            for number in range(self._workers):
                self.add(number)
            for number in range(self._workers):
                self._said(f"worker-{number}", _REGISTERED)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its session: a nanny's worker is in it
            process.wait()

    def add(self, number: int) -> None:
        """Start one more worker."""
        where = ("--local-directory", str(self._folder / f"scratch-{number}"), "--no-dashboard")
        self._start(
            *("worker", self.address, "--host", "127.0.0.1", "--nworkers", "1", "--nthreads", "1", *where),
            *("--memory-limit", self._memory, "--death-timeout", "60"),
            name=f"worker-{number}",
        )

    def workers(self) -> list[int]:
        """The process of each worker that lives now, its nanny's child with most memory."""
        found = []
        for nanny in self._processes[1:]:
            below = [pid for pid in _below(nanny.pid) if pid != nanny.pid]
            found += sorted(below, key=peak_bytes)[-1:]
        return found

    def _start(self, *words: str, name: str = "") -> None:
        command = [sys.executable, "-m", "dask", *words]
        with (self._folder / f"{name or words[0]}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    command, stdout=log, stderr=log, cwd=ROOT, env=self._environment, start_new_session=True
                )
            )

    def _said(self, name: str, what: re.Pattern[str]) -> str:
        """What a process wrote into its log that fits; waits for it."""
        until = time.monotonic() + STARTS_S
        log = self._folder / f"{name}.log"
        while time.monotonic() < until:
            if found := what.search(log.read_text(errors="replace")):
                return found[1] if found.groups() else found[0]
            time.sleep(0.05)
        raise RuntimeError(f"the {name} did not start:\n{log.read_text(errors='replace')[-2000:]}")


def peak_bytes(pid: int) -> int:
    """The most memory that a process had so far; 0 where it is gone."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return 0


def processor_s(pid: int) -> float:
    """What a process took of the processors so far, its own and the system's for it; 0 where it is gone."""
    with contextlib.suppress(OSError, IndexError):
        told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _below(pid: int) -> Iterator[int]:
    """A process and all that it started and that live."""
    yield pid
    for thread in Path(f"/proc/{pid}/task").glob("*"):  # a child is that of the thread that started it
        with contextlib.suppress(OSError):
            for child in (thread / "children").read_text().split():
                yield from _below(int(child))
