"""Which store this process works in, and what is found there."""

import functools
import os
import threading
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from app.facts.settled import saying
from app.identity.asking import who
from app.registry_place import registry_at
from runs.database import At
from runs.demo_runs import DemoRuns
from runs.live import PREFIX
from runs.registry import Registry
from runs.share_book import NONE, Groups, ShareBook
from runs.store import Store
from runs.tidy import purge_on_opening

STORE_VARIABLE = "CHIPLEDGER_STORE"


@dataclass(frozen=True)
class Workspace:
    store: Store
    registry: Registry

    @property
    def shares(self) -> ShareBook:
        return _shares(self.registry.at, self.store.root)

    def tells_of(self, run_id: str) -> bool:
        """Whether what is kept of a run, or of a live run by its address, beside the store may be told to whoever asks.
        Of one that is gone for good nobody knows any more who saw it: then only to who sees all."""
        if who().sees_all:
            return True
        if run_id.startswith(PREFIX):
            return self.store.live.read(run_id.removeprefix(PREFIX)) is not None
        return self.store.kept(run_id) is not None or self.store.live.leading(run_id) is not None

    @property
    def demo(self) -> DemoRuns:
        return DemoRuns(self.registry.at)


@functools.cache
def _shares(registry: At, root: Path) -> ShareBook:
    """One in a process: it keeps what groups hide."""
    return ShareBook(registry, root)


def _hidden(registry: At, root: Path) -> Groups:
    """What whoever asks may not see: the one place where that is decided."""
    asks = who()
    return NONE if asks.sees_all else _shares(registry, root).hidden(asks.groups)


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
            registry = Registry(registry_at(store.root))
            store.said = partial(saying, registry, store.runs_folder)
            store.hidden = partial(_hidden, registry.at, store.root)
            _opened[path] = Workspace(store, registry)
            purge_on_opening(store, registry.at)
    _opened[path].store.check()
    return _opened[path]
