"""Thousands of damaged files, in processes of their own with a limit on memory, each file with a limit on time.

A process tells the number of the file that it begins and what came of it. One that dies, or takes too long over a
file, is that file's outcome, and the next process goes on behind it.
"""

import contextlib
import json
import os
import resource
import select
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.faults.fuzz.case import Case, Outcome, try_case

DIED, HANG = "died", "hang"
CPU_LIMIT_S, WALL_LIMIT_S = 10.0, 120.0  # of a file; the machine may be busy, so the processor's own time counts
MEMORY_BYTES = 2 << 30  # of addresses beyond what the process has when it begins
A_PROCESS = 400  # files
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Limits:
    cpu_s: float = CPU_LIMIT_S
    wall_s: float = WALL_LIMIT_S
    memory_bytes: int = MEMORY_BYTES


def hunt(
    make: Callable[[int], Case], numbers: Iterable[int], folder: Path, limits: Limits = Limits()
) -> Iterator[Outcome]:
    """What came of each file, in order. `folder` is emptied."""
    waiting = list(numbers)
    while waiting:
        some, waiting = waiting[:A_PROCESS], waiting[A_PROCESS:]
        while some:
            done = 0
            for outcome in _in_a_process(make, some, folder, limits):
                done += 1
                yield outcome
            some = some[max(1, done) :]


def _in_a_process(make: Callable[[int], Case], some: list[int], folder: Path, limits: Limits) -> Iterator[Outcome]:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    ours, theirs = os.pipe()
    if not (pid := os.fork()):
        os.close(ours)
        _be(make, some, folder, theirs, limits)
    os.close(theirs)
    begun, pending = -1, b""
    since, cpu = time.monotonic(), 0.0
    try:
        while True:
            ready, _, _ = select.select([ours], [], [], 0.5)
            data = os.read(ours, 1 << 16) if ready else None
            if data == b"":
                break
            for line in (lines := (pending + (data or b"")).split(b"\n"))[:-1]:
                told = json.loads(line)
                if "begun" in told:
                    begun, since, cpu = told["begun"], time.monotonic(), _cpu_s(pid)
                else:
                    yield Outcome(**told)
                    begun = -1
            pending = lines[-1]
            if begun >= 0 and (_cpu_s(pid) - cpu > limits.cpu_s or time.monotonic() - since > limits.wall_s):
                os.kill(pid, signal.SIGKILL)
                one = make(begun)
                yield Outcome(begun, one.reader, one.how, HANG, f"{_cpu_s(pid) - cpu:.0f} s of a core")
                return
    finally:
        os.close(ours)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if begun >= 0:
        one = make(begun)
        yield Outcome(begun, one.reader, one.how, DIED, f"exit code {code}")


def _be(make: Callable[[int], Case], some: list[int], folder: Path, pipe: int, limits: Limits) -> None:
    """What a process does: tells what it begins and what came of it, and never returns."""
    try:
        os.chdir(folder)
        most = _addresses() + limits.memory_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for number in some:
            os.write(pipe, json.dumps({"begun": number}).encode() + b"\n")
            outcome = try_case(make(number), folder)
            os.write(pipe, json.dumps(outcome.to_dict()).encode() + b"\n")
        os._exit(0)
    except BaseException as e:
        os.write(2, f"{type(e).__name__}: {e}\n".encode())
    finally:
        os._exit(70)


def _addresses() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _cpu_s(pid: int) -> float:
    try:
        told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(told[11]) + int(told[12])) / _TICKS
