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
from errors import InputError, QuestionError
from errors.numbers import Number
from runs.database import At
from runs.demo_runs import DemoRuns
from runs.live import PREFIX
from runs.live_book import LiveBook
from runs.objects.opening import address_of, is_url, local_folder, note
from runs.postgres.relay import Relay
from runs.registry import Registry
from runs.share_book import NONE, Groups, ShareBook
from runs.store import Store
from runs.tidy import purge_on_opening

STORE_VARIABLE = "CHIPLEDGER_STORE"
CACHE_VARIABLE, CACHE_BYTES_VARIABLE = "CHIPLEDGER_CACHE", "CHIPLEDGER_CACHE_BYTES"
LOCAL = "~/.local/share/chipledger"  # below it the folder that goes with each store of objects
_BYTES = Number(1, whole=True)


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
    """The store's folder: as given, else $CHIPLEDGER_STORE, else ~/.chipledger. Of an address of objects it is the one
    that goes with it on this machine, which is made."""
    asked = given or os.environ.get(STORE_VARIABLE) or "~/.chipledger"
    if not is_url(asked):
        return Path(asked).expanduser().absolute()
    folder = local_folder(asked, Path(os.environ.get(CACHE_VARIABLE) or LOCAL).expanduser().absolute())
    note(asked, folder)
    return folder


def open_store(path: Path) -> Store:
    """The store in a folder, or the one of objects with which the folder goes."""
    if (url := address_of(path)) is None:
        return Store(path)
    from runs.objects.store import MOST_BYTES, ObjectStore  # late: a local store does without

    return ObjectStore(url, path, _most_bytes(MOST_BYTES))


def _most_bytes(default: int) -> int:
    if not (text := os.environ.get(CACHE_BYTES_VARIABLE, "").strip()):
        return default
    try:
        return int(_BYTES.read(text, CACHE_BYTES_VARIABLE))
    except QuestionError as e:
        what, expected = f"{text[:80]!r} is no size of a cache", f"{_BYTES.expected}, in bytes"
        raise InputError(what, where=f"${CACHE_BYTES_VARIABLE}", expected=expected) from e


_opened: dict[Path, Workspace] = {}
_opening = threading.Lock()


def _share_live(store: Store, at: At) -> None:
    """Have all machines of a store in a bucket know its live runs: where they have a registry in common."""
    if isinstance(at, Path | Relay) or not store.kept_identity:
        return
    from runs.postgres.presence import following
    from runs.postgres.server import Server

    if isinstance(at, Server):
        store.live.shared_by(LiveBook(at), partial(following, at))


def workspace(given: str | None = None) -> Workspace:
    """The store and its registry, opened once per process. Raises InputError where the folder cannot be used, and where
    it is gone since: an empty one in its place would look like a store that never held a run."""
    path = store_path(given)
    with _opening:
        if path not in _opened:
            store = open_store(path)
            registry = Registry(registry_at(store.root, store.kept_identity, store.where))
            store.said = partial(saying, registry, store.runs_folder)
            store.hidden = partial(_hidden, registry.at, store.root)
            _share_live(store, registry.at)
            _opened[path] = Workspace(store, registry)
            if not isinstance(registry.at, Relay):  # a job that reads files takes nothing away: its server does
                purge_on_opening(store, registry.at)
    _opened[path].store.check()
    return _opened[path]
