"""Command lines, each in a forked process that is killed at a random moment.

A process runs some acts one after the other, each as `chipledger` would with a store that it opens anew, and says
before and after each where it is. It is forked from one that has imported all of it, so that a kill meets work and not
the loading of libraries.
"""

import os
import random
import select
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.faults.kills.acts import Act

ACTS_EACH = 5
REFUSED = "refused"


@dataclass
class Told:
    """How far a process came: `done` were acknowledged, `begun` was not; `refused`: what should not have been."""

    done: list[Act] = field(default_factory=list)
    begun: Act | None = None
    refused: list[str] = field(default_factory=list)


def killed(acts: Sequence[Act], root: Path, after_s: float) -> tuple[Told, float | None]:
    """(how far it came, in how many seconds it was done; None: it was killed before that)."""
    ours, theirs = os.pipe()
    if not (pid := os.fork()):
        os.close(ours)
        _be(acts, root, theirs)
    os.close(theirs)
    began, said = time.monotonic(), b""
    while (left := began + after_s - time.monotonic()) > 0:
        ready, _, _ = select.select([ours], [], [], left)
        if ready:
            if not (data := os.read(ours, 4096)):
                break
            said += data
    took = time.monotonic() - began
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    while data := os.read(ours, 4096):
        said += data
    os.close(ours)
    status = os.waitpid(pid, 0)[1]
    return _told(acts, said.decode()), None if os.WIFSIGNALED(status) else took


def _told(acts: Sequence[Act], said: str) -> Told:
    told = Told()
    for line in said.splitlines():
        what, number, *more = line.split(" ", 2)
        act = acts[int(number)]
        if what == "begun":
            told.begun = act
        elif what == "done":
            told.done.append(act)
            told.begun = None
        else:
            told.refused.append(f"{act.kind}: {' '.join(act.argv)[:80]}: {' '.join(more)[:300]}")
            told.begun = None
    return told


def _be(acts: Sequence[Act], root: Path, pipe: int) -> None:
    """What a process does; it never returns."""
    try:
        from app import workspace
        from app.cli import main

        log = os.open(root.parent / "said.txt", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        for fd in (1, 2):
            os.dup2(log, fd)
        for number, act in enumerate(acts):
            workspace._opened.clear()
            os.write(pipe, f"begun {number}\n".encode())
            code = main([*act.argv[:1], f"--store={root}", *act.argv[1:]])
            why = " ".join(os.pread(log, 500, 0).decode(errors="replace").split()) if code else ""
            os.write(pipe, (f"done {number}\n" if not code else f"{REFUSED} {number} {code} {why}\n").encode())
        os._exit(0)
    finally:
        os._exit(70)


class Pace:
    """How long the acts of a kind take, so that kills are spread over all of it."""

    def __init__(self, chance: random.Random):
        self._chance, self._took = chance, dict[str, float]()

    def moment(self, kind: str, acts: int) -> float:
        """When to kill: a little beyond the end, too."""
        return self._chance.uniform(0, 1.15) * acts * self._took.get(kind, 0.15)

    def learn(self, kind: str, acts: int, took_s: float, whole: bool) -> None:
        each = took_s / max(1, acts)
        known = self._took.get(kind, each)
        self._took[kind] = 0.8 * known + 0.2 * each if whole or each > known else known
