"""Where stores of the conformance suite lie: a local folder, `file://`, a server that speaks S3, an emulator of Azure.

The servers are real programs on loopback, started once for all tests of a process and ended with it, by their ids.
"""

import os
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from runs.objects.store import MOST_BYTES, ObjectStore
from runs.schema import SCHEMAS
from runs.store import Store

NS = 1_767_571_200_000_000_001


@dataclass
class Place:
    """`open(machine)` is the store as that machine sees it: with a folder, and so a cache, of its own."""

    name: str
    url: str
    folder: Path
    opened: dict[str, Store] = field(default_factory=dict)

    def open(self, machine: str = "one", most_bytes: int = MOST_BYTES) -> Store:
        if self.name == "folder":
            return Store(self.folder / "store")
        return ObjectStore(self.url, self.folder / machine, most_bytes)

    def objects(self):
        return self.open("looking").objects

    def listed(self, below: str = "runs") -> list[str]:
        return sorted(e.key for e in self.objects().entries(below))


def write(
    store, run_id="abcd1234", name="a run", rows=3, replace=False, before_commit: Callable[[], None] = lambda: None
):
    with store.writer() as w:
        w.rows("steps", SCHEMAS["steps"].batch({"step": range(rows), "start_ns": [NS + i for i in range(rows)]}))
        w.blob("program.bin", os.urandom(1000))
        before_commit()
        return w.commit(run_id=run_id, name=name, kind="training", facts={}, sources=[], replace=replace)


def steps(run) -> list[int]:
    return run.tables.arrow("steps", ["start_ns"])["start_ns"].to_pylist()


def at_once(*acts: Callable[[], object]) -> list[object]:
    """What each gives, begun together; raises what one raises."""
    found: list[object] = [None] * len(acts)
    wrong: list[BaseException] = []
    gate = threading.Barrier(len(acts))

    def call(n: int, act: Callable[[], object]) -> None:
        try:
            gate.wait()
            found[n] = act()
        except BaseException as e:  # noqa: BLE001 - told by the test
            wrong.append(e)

    threads = [threading.Thread(target=call, args=(n, act)) for n, act in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]
    return found


def unique() -> str:
    return uuid.uuid4().hex[:12]
