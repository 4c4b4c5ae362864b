# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# distributed has no stubs
"""Work by the workers of a Dask cluster, found by its scheduler's address. Needs `chipledger[cluster]`.

Dask gives a task whose worker was lost to another; a task that was done before is found where it left its answer.
"""

import contextlib
import itertools
import queue
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from errors import ChipledgerError
from errors import format as fmt
from runs.spread.engine import (
    ASK_S,
    ATTEMPTS,
    SAME,
    EngineError,
    OtherVersionError,
    Outcome,
    Task,
    Work,
    named,
    other_version,
    perform,
)

ADDRESS = re.compile(r"(tcp|tls)://(\[[0-9a-fA-F:]+\]|[^/:\s]+):(\d{1,5})")
CONNECT_S = 5.0
WITHOUT_WORKERS_S = 60.0  # a cluster may be without workers so long: one that is lost is started anew
AHEAD = 2  # tasks under way for each thread of a worker
START = "Start one with `dask scheduler`, and workers with `dask worker ADDRESS --nthreads 1` (docs/scale.md)."
LACKING = "Install it with `pip install 'chipledger[cluster]'`."


class Cluster:
    """An engine of the workers at `address`. `priority`: of two jobs at once the tasks of the one with the higher
    number go first. Raises EngineError, in one sentence, where there is no cluster, no worker, or no Dask here."""

    elsewhere = True

    def __init__(self, address: str, priority: int = 0):
        self._address, self._priority = checked(address), priority
        try:
            import distributed
        except ImportError as e:
            raise EngineError("work on a cluster needs Dask", where=address, advice=LACKING) from e
        _reach(address)
        self._distributed: Any = distributed
        self._futures: dict[str, Any] = {}

    def __enter__(self) -> Self:
        self._client = self._connected()
        try:
            self._client.wait_for_workers(1, timeout=CONNECT_S)
        except (OSError, TimeoutError) as e:
            self._client.close(timeout=CONNECT_S)
            raise EngineError("the cluster has no workers", where=self._address, advice=START) from e
        return self

    def _connected(self) -> Any:
        """Its client, made on a thread of its own: where something else listens there, Dask waits without end."""
        made: queue.Queue[Any] = queue.Queue()

        def make() -> None:
            try:
                made.put(self._distributed.Client(self._address, timeout=CONNECT_S, set_as_default=False))
            except Exception as e:
                made.put(e)

        threading.Thread(target=make, name="dask", daemon=True).start()
        try:
            client = made.get(timeout=2 * CONNECT_S)
        except queue.Empty:
            client = None
        if client is None or isinstance(client, Exception):
            raise _nobody(self._address, "no Dask scheduler answers") from client
        return client

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        with contextlib.suppress(Exception):  # a scheduler that is gone must not hide `error`
            self._client.cancel(list(self._futures.values()), force=True)
        self._futures.clear()
        with contextlib.suppress(Exception):
            self._client.close(timeout=CONNECT_S)

    def map(
        self, work: Work, tasks: Sequence[Task], check: Callable[[], None], report: Callable[[int], None]
    ) -> Iterator[Outcome]:
        """As `Engine.map` says."""
        stamp = str(named(work.stamp)())
        self._seen_s = time.monotonic()
        self._of_this_version(work, stamp)
        course = _Course(self._client, self._priority, work, stamp, self._futures)
        waiting, told, place = iter(enumerate(tasks)), dict[int, Outcome](), 0
        while place < len(tasks):
            check()
            for n, task in itertools.islice(waiting, max(0, self._room() - course.under_way)):
                course.submit(n, task)
            for n, outcome in course.ended():
                told[n] = outcome
            report(course.done_weight)
            while place in told:
                yield told.pop(place)
                place += 1

    def _room(self) -> int:
        """How many tasks may be under way. Workers come and go; raises EngineError where all are gone for long."""
        try:
            threads = sum(self._client.nthreads().values())
        except (OSError, TimeoutError, ValueError) as e:
            raise _nobody(self._address, "the Dask scheduler is gone") from e
        if self._client.status not in ("running", "connecting"):
            raise _nobody(self._address, "the Dask scheduler is gone")
        now = time.monotonic()
        self._seen_s = now if threads else self._seen_s
        if now - self._seen_s > WITHOUT_WORKERS_S:
            what = f"the cluster has had no workers for {WITHOUT_WORKERS_S:g} s"
            raise EngineError(what, where=self._address, advice=START)
        return AHEAD * threads

    def _of_this_version(self, work: Work, stamp: str) -> None:
        """Raises OtherVersionError where a worker is of another version, before anything is done."""
        try:
            own = self._client.run(_stamp, work.stamp, on_error="return")
        except (OSError, TimeoutError) as e:
            raise _nobody(self._address, "the Dask scheduler is gone") from e
        for worker, said in own.items():
            if isinstance(said, OSError):  # it was lost just now
                continue
            if isinstance(said, BaseException):
                raise OtherVersionError(
                    f"the worker {worker} has no Chipledger of this version ({type(said).__name__}: {said})",
                    where=self._address,
                    advice=SAME,
                ) from said
            if said != stamp:
                raise OtherVersionError(other_version(said, stamp), where=str(worker), advice=SAME)


class _Course:
    """The tasks of one map that are under way."""

    def __init__(self, client: Any, priority: int, work: Work, stamp: str, futures: dict[str, Any]):
        self._client, self._priority, self._work, self._stamp = client, priority, work, stamp
        self._futures = futures
        self._ended: queue.Queue[tuple[int, Task, str]] = queue.Queue()
        self._attempts: dict[int, int] = {}
        self.under_way, self.done_weight = 0, 0

    def submit(self, number: int, task: Task) -> None:
        self._attempts[number] = self._attempts.get(number, 0) + 1
        key = f"chipledger-{task.key}-{uuid.uuid4().hex}"
        future = self._client.submit(
            perform, self._work, self._stamp, task.asked, key=key, priority=self._priority, pure=False
        )
        self._futures[key] = future
        self.under_way += 1

        def over(future: Any) -> None:
            self._ended.put((number, task, key))

        future.add_done_callback(over)

    def ended(self) -> Iterator[tuple[int, Outcome]]:
        """Those that ended since, waiting a moment for the first. One whose workers were lost is tried again."""
        wait: float | None = ASK_S
        while True:
            try:
                number, task, key = self._ended.get(timeout=wait) if wait else self._ended.get_nowait()
            except queue.Empty:
                return
            wait = None
            future = self._futures.pop(key)
            self.under_way -= 1
            if future.status == "finished":
                self.done_weight += task.weight
                yield number, Outcome(task=task, answer=future.result())
                continue
            problem = _problem(future)
            if self._attempts[number] < ATTEMPTS:
                self.submit(number, task)
            else:
                yield number, Outcome(task=task, problem=problem)


def _problem(future: Any) -> str:
    """What ended a task's workers. Raises what the task itself raised."""
    error = future.exception() if future.status == "error" else None
    if isinstance(error, ChipledgerError):
        raise error
    if isinstance(error, ImportError | AttributeError):
        raise OtherVersionError(
            f"a worker has no Chipledger of this version ({type(error).__name__}: {error})", advice=SAME
        ) from error
    reason = f"{type(error).__name__}: {error}" if error is not None else str(future.status)
    return f"its worker was lost {fmt.count(ATTEMPTS, 'time')} ({' '.join(reason.split())[:200]})"


def checked(address: str) -> str:
    """Raises EngineError for what is no address of a scheduler."""
    found = ADDRESS.fullmatch(address)
    if found is None or not 0 < int(found[3]) < 1 << 16:
        raise EngineError(
            "no address of a Dask scheduler", where=address[:200], expected="tcp://HOST:PORT or tls://HOST:PORT"
        )
    return address


def _reach(address: str) -> None:
    """Raises EngineError at once where nobody listens: Dask would try for long."""
    found = ADDRESS.fullmatch(address)
    assert found is not None
    try:
        socket.create_connection((found[2].strip("[]"), int(found[3])), CONNECT_S).close()
    except OSError as e:
        raise _nobody(address, f"no Dask scheduler answers ({e.strerror or e})") from e


def _nobody(address: str, what: str) -> EngineError:
    return EngineError(what, where=address, advice=START)


def _stamp(function: str) -> str:
    """On a worker: of which version it is."""
    return str(named(function)())
