"""What goes by itself: runs that lay in the bin long enough, with all that was added to them, and what processes left
behind that were killed."""

import contextlib
import threading
import time
from pathlib import Path

from errors import ChipledgerError
from runs.bin import KEPT_S
from runs.database import At
from runs.derived import FOLDER, forget
from runs.durable import HALF
from runs.live import LOCK
from runs.scratch import abandoned
from runs.shelf import Shelf
from runs.store import Store

OPENING_S = 1.0  # of emptying the bin whenever a store is opened
DAY_S = 86_400.0


def purge(store: Store, registry: At, older_than_s: float = KEPT_S, within_s: float = float("inf")) -> list[str]:
    """Empty the bin of what has lain there longer, with all that was added to it. Returns the ids of what is gone."""
    gone = store.bin.empty(older_than_s, within_s)
    if gone:
        Shelf(registry).forget(gone)
    return gone


def purge_on_opening(store: Store, registry: At) -> None:
    """As far as it can be done while somebody waits; a store that cannot be written is opened all the same."""
    with contextlib.suppress(ChipledgerError):
        purge(store, registry, within_s=OPENING_S)
        sweep_left(store)


def sweep_left(store: Store) -> None:
    """Take away what a process left that was killed between two steps: what was worked out of a run that is gone, and
    pointers of live runs that were half written."""
    with contextlib.suppress(OSError):
        for path in (store.root / FOLDER).iterdir():
            if not store.has(path.name):
                forget(store.root, path.name)
    with contextlib.suppress(OSError):
        for folder in store.live.folder.iterdir():
            half = [path for path in folder.glob(".*") if HALF.fullmatch(path.name)]
            if half:
                _sweep_half(folder, half)


def _sweep_half(folder: Path, half: list[Path]) -> None:
    """Unless somebody follows the job at this moment."""
    with abandoned(folder / LOCK, folder) as gone:
        for path in half if gone else ():
            path.unlink(missing_ok=True)


def forget_gone(store: Store, shelf: Shelf) -> None:
    """Put right what a process left that was killed after it moved a run and before it said so. What was added to a run
    that is neither in the store nor in its bin goes a day after that: it may be read anew at this moment."""
    noted = shelf.when_binned()
    there = [i for i in noted if store.has(i)]
    shelf.note_restored(there)
    long_ago_ns = time.time_ns() - int(DAY_S * 1e9)
    gone = [i for i, ns in noted.items() if ns < long_ago_ns and not store.has(i) and not store.bin.has(i)]
    if gone:
        shelf.forget(gone)


def keep_tidy(store: Store, registry: At, stop: threading.Event) -> None:
    """Once a day, until `stop`."""
    while True:
        for act in (
            lambda: purge(store, registry),
            lambda: forget_gone(store, Shelf(registry)),
            store.sweep,
        ):
            with contextlib.suppress(ChipledgerError, OSError):  # of one the others are done all the same
                act()
        if stop.wait(DAY_S):
            return
