"""What is done to a job, whichever framework it runs, and the record of it."""

import hashlib
import json
import time
from pathlib import Path

from reference.gpu.plan import Plan


class Events:
    """The record of what was done, one JSON line each."""

    def __init__(self, path: Path):
        path.parent.mkdir(exist_ok=True)
        self._out = path.open("w")

    def write(self, event: str, **told) -> None:
        print(json.dumps({"event": event, **told}), file=self._out, flush=True)


def late(plan: Plan, events: Events, step: int) -> None:
    """Work of one rank alone, before its step."""
    start, block = time.time_ns(), bytes(65536)
    while time.time_ns() - start < plan.late_s * 1e9:
        block = hashlib.sha256(block).digest() * 2048
    events.write("late", step=step, start_ns=start, end_ns=time.time_ns())
