"""Which store this process works in, and what is found there."""

import functools
import os
from dataclasses import dataclass
from pathlib import Path

from runs.registry import Registry
from runs.store import Store

STORE_VARIABLE = "CHIPLEDGER_STORE"


@dataclass(frozen=True)
class Workspace:
    store: Store
    registry: Registry


def store_path(given: str | None = None) -> Path:
    """The store's folder: as given, else $CHIPLEDGER_STORE, else ~/.chipledger."""
    return Path(given or os.environ.get(STORE_VARIABLE) or "~/.chipledger").expanduser().absolute()


@functools.lru_cache(maxsize=8)
def _open(path: Path) -> Workspace:
    store = Store(path)
    return Workspace(store, Registry(store.root / "registry.db"))


def workspace(given: str | None = None) -> Workspace:
    """The store and its registry, opened once per process. Raises InputError where the folder cannot be used."""
    path = store_path(given)
    if not path.is_dir():
        _open.cache_clear()  # somebody removed the folder; opening makes it anew
    return _open(path)
