"""The SHA-256 of each file as it lies on disk; of a folder that is one input, that of its files together. Taken by
threads of this process, or of many bytes by the workers of an engine."""

import contextlib
import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from collectors.ingesting.items import reading
from collectors.ingesting.unpack import CHUNK, SafeSource
from errors import InputError
from runs.begun_digests import begun, state_of
from runs.spread.engine import Engine, Task, Work

DIGESTS = Work(function=f"{__name__}:digests", stamp=f"{__name__}:algorithm")
ELSEWHERE_BYTES = 1 << 30  # fewer are hashed here, sooner than an engine is asked
TASK_BYTES = 1 << 28
ASK_S = 0.1  # how often `check` is asked while a digest is waited for
State = tuple[tuple[int, ...], ...]


def algorithm() -> str:
    """What every worker has to have in common."""
    return "sha256"


def states(source: SafeSource) -> State:
    """What the files of an input are, without reading them."""
    return tuple(state_of(file) for _, file in source.parts)


def hashed(
    sources: Sequence[SafeSource], check: Callable[[], None], engine: Engine | None = None
) -> list[tuple[str, State]]:
    """(digest, state before it was taken) of each. `check` may raise. Raises InputError for a file that cannot be
    read."""
    before = [_before(source) for source in sources]
    plain = [n for n, source in enumerate(sources) if type(source) is SafeSource]
    there: dict[int, str] = {}
    if engine is not None and sum(state[0][0] for state in (before[n] for n in plain)) >= ELSEWHERE_BYTES:
        there = _by(engine, [(n, sources[n], before[n]) for n in plain], check)
    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        here = (n for n in range(len(sources)) if n not in there)
        taken = pool.map(lambda n: (n, _taken(sources[n], before[n], check)), list(here))
        found = there | dict(taken)
    return [(found[n], before[n]) for n in range(len(sources))]


def _before(source: SafeSource) -> State:
    with reading(source):
        return states(source)


def _taken(source: SafeSource, before: State, check: Callable[[], None]) -> str:
    """The digest of an input: the one that was begun while this was loaded, else taken now."""
    future = begun(source.path, before[0]) if type(source) is SafeSource else None
    while future is not None:
        check()
        with contextlib.suppress(TimeoutError):
            if future.exception(ASK_S) is None:
                return future.result()
            future = None
    return _digest(source, check)


def _digest(source: SafeSource, check: Callable[[], None]) -> str:
    digest = hashlib.sha256()
    with reading(source):
        for name, file in source.parts:
            if name:
                digest.update(f"{name}\0{file.stat().st_size}\0".encode("utf-8", "surrogateescape"))
            with file.open("rb") as f:
                while chunk := f.read(CHUNK):
                    check()
                    digest.update(chunk)
    return digest.hexdigest()


def _by(engine: Engine, files: list[tuple[int, SafeSource, State]], check: Callable[[], None]) -> dict[int, str]:
    """The digests by number, taken by the workers of an engine."""
    tasks: list[Task] = []
    waiting: list[tuple[int, SafeSource, State]] = []
    for file in files:
        waiting.append(file)
        if sum(state[0][0] for _, _, state in waiting) >= TASK_BYTES:
            tasks.append(_task(waiting))
            waiting = []
    tasks += [_task(waiting)] if waiting else []
    found: dict[int, str] = {}
    for outcome in engine.map(DIGESTS, tasks, check, lambda done: None):
        if outcome.problem:
            raise InputError(outcome.problem, where=outcome.task.asked["files"][0][1])
        found |= outcome.answer
    return found


def _task(files: list[tuple[int, SafeSource, State]]) -> Task:
    asked = [(n, source.name, str(source.path.absolute())) for n, source, _ in files]
    key = hashlib.sha256(repr([(file, state) for file, (_, _, state) in zip(asked, files, strict=True)]).encode())
    return Task(key=key.hexdigest()[:32], asked={"files": asked})


def digests(asked: dict[str, Any]) -> dict[int, str]:
    """On a worker: the digest of each file, by its number."""
    return {n: _digest(SafeSource(Path(path), name), lambda: None) for n, name, path in asked["files"]}
