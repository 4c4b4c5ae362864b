"""Processes of jobs whose worker was killed, and that did not end with it."""

import contextlib
import json
import os
import time

from app.serve import process_tree

PATIENCE_S = 10.0  # for a process to end in order: the system told it to when its worker died


class Orphans:
    """Ends them, once they had time to end by themselves."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def look(self, child: str) -> None:
        """`child`: what `JobProcess.named` said, read by any worker of this machine; of another, and of a worker that
        lives, nothing is done."""
        with contextlib.suppress(OSError, ValueError):
            space, worker, worker_began, pid, began = json.loads(child or "[]")
            if os.readlink("/proc/self/ns/pid") != space or _lives(worker, worker_began) or not _lives(pid, began):
                return
            since_s = self._since.setdefault(child, time.monotonic())
            if time.monotonic() - since_s > PATIENCE_S:
                process_tree.kill(pid)
                del self._since[child]


def _lives(pid: int, began: int) -> bool:
    there = process_tree.seen(pid)
    return there is not None and there.began == began
