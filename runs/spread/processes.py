"""Work by processes of this machine, each with a limit of memory. One that ends is made anew: it costs its task."""

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, TimeoutError
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from runs.limits import FIRST_TO_GO, Limits
from runs.machine import memory_left, processors
from runs.spread import child as worker
from runs.spread.ending import end
from runs.spread.engine import ASK_S, ATTEMPTS, Outcome, Task, Work, named

AHEAD = 2  # tasks under way for each process: the next waits while one is done
MOST_PROCESSES = 8  # unless more are asked for: a job of the server may have 64 of all kinds
LEAST_MEMORY_BYTES = 1 << 30  # of a process, also where the machine has less to give
_ROOT = Path(__file__).parents[2]


class Processes:
    """An engine of `count` processes; None: one for each processor, MOST_PROCESSES at most. `memory_bytes`: what one
    may write to; None: its share of what the machine has."""

    elsewhere = False

    def __init__(self, count: int | None = None, memory_bytes: int | None = None):
        self._count = max(1, count or min(processors(), MOST_PROCESSES))
        share = max(LEAST_MEMORY_BYTES, memory_left() // self._count)
        self._limits = Limits(data_bytes=memory_bytes or share, first_to_go=FIRST_TO_GO)
        self._pool = ThreadPoolExecutor(self._count, thread_name_prefix="spread")
        self._own = threading.local()
        self._children: list[subprocess.Popen[bytes]] = []
        self._ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._ended = True
        end(self._children, self._pool)

    def map(
        self, work: Work, tasks: Sequence[Task], check: Callable[[], None], report: Callable[[int], None]
    ) -> Iterator[Outcome]:
        """As `Engine.map` says."""
        stamp = str(named(work.stamp)())
        waiting = iter(tasks)
        under_way: list[tuple[Task, Future[Outcome]]] = []
        done = 0

        def submit() -> None:
            if (task := next(waiting, None)) is not None:
                under_way.append((task, self._pool.submit(self._done, work, stamp, task)))

        for _ in range(self._count * AHEAD):
            submit()
        while under_way:
            task, future = under_way.pop(0)
            while not _over(future):
                check()
                report(done + sum(t.weight for t, f in under_way if f.done()))
            submit()
            outcome = future.result()
            done += task.weight
            yield outcome

    def _done(self, work: Work, stamp: str, task: Task) -> Outcome:
        """On a thread for each process: has the task done there."""
        how = ""
        for _ in range(ATTEMPTS):
            child = self._child()
            try:
                pickle.dump((work, stamp, task.asked), _pipe(child.stdin), protocol=5)
                _pipe(child.stdin).flush()
                kind, told = pickle.load(_pipe(child.stdout))
            except (OSError, EOFError, pickle.UnpicklingError):
                child.kill()  # it is gone already, or says what nobody understands
                code = child.wait()
                how = f"signal {-code}" if code < 0 else f"exit code {code}"
                if self._ended:
                    break
                continue
            if kind == "refused":
                raise _error(*told)
            return Outcome(task=task, answer=told)
        return Outcome(task=task, problem=f"the process that read it ended {ATTEMPTS} times ({how})")

    def _child(self) -> subprocess.Popen[bytes]:
        child: subprocess.Popen[bytes] | None = getattr(self._own, "child", None)
        if child is None or child.poll() is not None:
            command = self._limits.command(sys.executable, "-m", worker.__name__)
            child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=_ROOT, env=_environment()
            )
            self._children.append(child)
            self._own.child = child
        return child


def _over(future: "Future[Outcome]") -> bool:
    """Whether it is done, or will be within a moment."""
    try:
        future.result(ASK_S)
    except TimeoutError:
        return future.done()
    except Exception:
        return True  # told by whoever takes the result
    return True


def _error(kind: Any, said: dict[str, str]) -> Exception:
    return kind(said.pop("what"), **said)


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None  # every child is started with both
    return pipe


def _environment() -> dict[str, str]:
    """As here, but the project is found where this one was, whatever folder it was started in."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))}
