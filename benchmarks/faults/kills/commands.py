"""Command lines, each in a forked process that is killed at a random moment, or at a random call that changes the disk.

A process runs some acts one after the other, each as `chipledger` would with a store that it opens anew, and says
before and after each where it is. It is forked from one that has imported all of it, so that a kill meets work and not
the loading of libraries.
"""

import os
import random
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.faults.kills.acts import Act

ACTS_EACH = 3
BY_CALL = 0.6  # of the kills; the others come after a time
LONGEST_S = 60.0
REFUSED = "refused"
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CHANGING = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.utime", "os.chmod", "sqlite3.connect")


@dataclass
class Told:
    """How far a process came: `done` were acknowledged, `begun` was not; `refused`: what should not have been."""

    done: list[Act] = field(default_factory=list)
    begun: Act | None = None
    refused: list[str] = field(default_factory=list)
    took_s: float = 0.0  # until the last that was done
    calls: int = 0  # that changed the disk, until the last that was done


def killed(acts: Sequence[Act], root: Path, after_s: float, at_call: int | None = None) -> tuple[Told, float | None]:
    """(how far it came, in how many seconds it was done; None: it was killed before that). `at_call`: it kills itself
    before so many calls that change the disk, else after so many seconds it is killed."""
    ours, theirs = os.pipe()
    if not (pid := os.fork()):
        os.close(ours)
        _be(acts, root, theirs, at_call)
    os.close(theirs)
    began, said, heard_s = time.monotonic(), b"", 0.0
    while (left := began + after_s - time.monotonic()) > 0:
        ready, _, _ = select.select([ours], [], [], left)
        if ready:
            if not (data := os.read(ours, 4096)):
                break
            said += data
            heard_s = time.monotonic() - began if b"done" in data else heard_s
    took = time.monotonic() - began
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    while data := os.read(ours, 4096):
        said += data
    os.close(ours)
    status = os.waitpid(pid, 0)[1]
    told = _told(acts, said.decode())
    told.took_s = heard_s
    return told, None if os.WIFSIGNALED(status) else took


def _told(acts: Sequence[Act], said: str) -> Told:
    told = Told()
    for line in said.splitlines():
        what, number, *more = line.split(" ", 2)
        act = acts[int(number)]
        if what == "begun":
            told.begun = act
        elif what == "done":
            told.done.append(act)
            told.begun, told.calls = None, int(more[0])
        else:
            told.refused.append(f"{act.kind}: {' '.join(act.argv)[:80]}: {' '.join(more)[:300]}")
            told.begun = None
    return told


def _be(acts: Sequence[Act], root: Path, pipe: int, at_call: int | None) -> None:
    """What a process does; it never returns."""
    calls = 0

    def count(event: str, given: tuple[Any, ...]) -> None:
        nonlocal calls
        if event in _CHANGING and (event != "open" or (isinstance(given[2], int) and given[2] & _WRITES)):
            calls += 1
            if calls == at_call:
                os.kill(os.getpid(), signal.SIGKILL)

    try:
        from app import workspace
        from app.cli import main

        log = os.open(root.parent / "said.txt", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        for fd in (1, 2):
            os.dup2(log, fd)
        sys.addaudithook(count)
        for number, act in enumerate(acts):
            workspace._opened.clear()
            os.write(pipe, f"begun {number}\n".encode())
            inner = INNER.get(act.argv[0])
            code = inner(root, *act.argv[1:]) if inner else main([*act.argv[:1], f"--store={root}", *act.argv[1:]])
            why = " ".join(os.pread(log, 500, 0).decode(errors="replace").split()) if code else ""
            os.write(pipe, (f"done {number} {calls}\n" if not code else f"{REFUSED} {number} {code} {why}\n").encode())
        os._exit(0)
    finally:
        os._exit(70)


def _derive(root: Path, run_id: str, key: str) -> int:
    """Keep an answer on disk, as a timeline of many events is kept."""
    from runs.derived import Derived

    def make(folder: Path) -> None:
        for n in range(3):
            (folder / f"{n}.column").write_bytes(key.encode() * 1000)

    def read(folder: Path) -> list[bytes]:
        return [p.read_bytes() for p in folder.iterdir()]

    got = Derived(root, run_id).get(key, read, make)
    return 0 if got == [key.encode() * 1000] * 3 else 1


def _follow(root: Path, name: str, entries: str) -> int:
    """Lead a live run on, as `chipledger watch` does."""
    from runs.live import Live, LiveRuns

    live = LiveRuns(root / "live")
    with live.following(name):
        live.write(Live(name, "project", "job", entries=int(entries)))
    return 0


INNER: dict[str, Callable[..., int]] = {"derive": _derive, "follow": _follow}


class Pace:
    """How long the acts of a kind take, and how often they change the disk, so that kills are spread over all of it."""

    def __init__(self, chance: random.Random):
        self._chance, self._took, self._calls = chance, dict[str, float](), dict[str, float]()

    def knows(self, kind: str) -> bool:
        """Else acts of this kind are to be let done first."""
        return kind in self._took

    def moment(self, kind: str, acts: int) -> tuple[float, int | None]:
        """(after how many seconds, or before which call) to kill: a little beyond the end, too."""
        if not self.knows(kind):
            return LONGEST_S, None
        if self._chance.random() < BY_CALL:
            return LONGEST_S, self._chance.randint(1, int(acts * self._calls[kind] * 1.1) + 1)
        return self._chance.uniform(0, 1.15) * acts * self._took[kind], None

    def learn(self, kind: str, acts: int, took_s: float, calls: int) -> None:
        """Of acts that were done, in so many seconds."""
        if acts:
            each = took_s / acts
            self._took[kind] = 0.7 * self._took.get(kind, each) + 0.3 * each
            self._calls[kind] = max(1.0, calls / acts)
