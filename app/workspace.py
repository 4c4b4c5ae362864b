"""Which store this process works in, and what is found there."""

import os
import threading
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from app.facts.settled import saying
from runs.demo_runs import DemoRuns
from runs.registry import Registry
from runs.store import Store
from runs.tidy import purge_on_opening

STORE_VARIABLE = "CHIPLEDGER_STORE"


@dataclass(frozen=True)
class Workspace:
    store: Store
    registry: Registry

    @property
    def demo(self) -> DemoRuns:
        return DemoRuns(self.registry.path)


def store_path(given: str | None = None) -> Path:
    """The store's folder: as given, else $CHIPLEDGER_STORE, else ~/.chipledger."""
    return Path(given or os.environ.get(STORE_VARIABLE) or "~/.chipledger").expanduser().absolute()


_opened: dict[Path, Workspace] = {}
_opening = threading.Lock()


def workspace(given: str | None = None) -> Workspace:
    """The store and its registry, opened once per process. Raises InputError where the folder cannot be used, and where
    it is gone since: an empty one in its place would look like a store that never held a run."""
    path = store_path(given)
    with _opening:
        if path not in _opened:
            store = Store(path)
            registry = Registry(store.root / "registry.db")
            store.said = partial(saying, registry, store.runs_folder)
            _opened[path] = Workspace(store, registry)
            purge_on_opening(store, registry.path)
    _opened[path].store.check()
    return _opened[path]
