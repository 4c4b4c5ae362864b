"""The index of a store of many as it stood, in one file: whoever starts makes anew only the rows that are others.

    <store>/derived/index.npz      columns of the index, and of each row what tells that it is the same: the run's
                                   folder, its manifest's mark, and a number of what people added to it

It follows from runs and registry, and may be deleted at any time: so it is where a run of it goes. Where it cannot be
used rows are made.
"""

import contextlib
import json
import time
import uuid
import zipfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from analyzers.fleet.packed import number_of
from app.library.additions import NOTHING_ADDED, Added
from app.library.answers import answering
from app.library.index import IS, TEXT, Index
from runs.derived import FOLDER
from runs.durable import PRIVATE, keep_private

ABANDONED_S = 3600.0  # since it was last written to: by nobody who is still at it
_VALUES = "values "
_FORM = 1  # another one when the file is laid out otherwise
_OTHERS = ("pending", "live")  # rows in such a state are made anew
_BAD = (OSError, ValueError, KeyError, TypeError, IndexError, EOFError, zipfile.BadZipFile)


@dataclass(frozen=True, eq=False)
class Kept:
    """Rows by slot, and by run what tells that its row is the same. `run_ids`: empty where the slot is free."""

    run_ids: list[str]
    columns: Mapping[str, np.ndarray]
    values: Mapping[str, list[Any]]
    marks: dict[str, int]
    folders: dict[str, int]
    added: dict[str, int]


class Snapshot:
    """Of the store in `root`. Nothing here raises: what is not kept is made."""

    def __init__(self, root: Path):
        self._path = root / FOLDER / "index.npz"

    def read(self) -> Kept | None:
        with contextlib.suppress(*_BAD), np.load(self._path, allow_pickle=False) as file:
            if file["form"].tobytes() == _form():
                return _kept({name: file[name] for name in file.files})
        return None

    def write(self, taken: Mapping[str, np.ndarray]) -> None:
        """What `taken` told."""
        with contextlib.suppress(*_BAD):
            self._path.parent.mkdir(mode=PRIVATE, exist_ok=True)
            self._sweep()
            partial = self._path.with_name(f".{self._path.name}.{uuid.uuid4().hex}")
            try:
                with partial.open("xb") as file:
                    keep_private(partial)
                    np.savez(file, **taken)  # pyright: ignore[reportArgumentType]
                partial.replace(self._path)
            finally:
                partial.unlink(missing_ok=True)

    def _sweep(self) -> None:
        """What writers left that were killed."""
        for partial in self._path.parent.glob(f".{self._path.name}.*"):
            if time.time() - partial.stat().st_mtime > ABANDONED_S:
                partial.unlink(missing_ok=True)

    def forget(self) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Same:
    """By run: what tells its manifest and its folder from others, and what was added to it."""

    marks: Mapping[str, int]
    folders: Mapping[str, int]
    added: Callable[[str], Added]


def taken(index: Index, told: Same, but: Collection[str] = ()) -> dict[str, np.ndarray]:
    """All that is kept of an index as it is now, by slot: of a row that whoever starts makes anew the slot is free, as
    it is of the runs in `but`."""
    columns, others = index.copied(), set(but)
    lasting = columns[IS + "there"] & columns[IS + "readable"]
    for name in _OTHERS:
        lasting &= ~columns[IS + name]
    for slot in np.flatnonzero(lasting).tolist():
        lasting[slot] = (run_id := index.ids[slot]) in told.folders and run_id not in others
    arrays = {name: np.where(lasting, values, np.zeros(1, dtype=values.dtype)) for name, values in columns.items()}
    for name, text in index.texts.items():
        arrays[_VALUES + name], arrays[TEXT + name] = _compact(text.values, arrays[TEXT + name])
    run_ids = [run_id if last else "" for run_id, last in zip(index.ids, lasting.tolist(), strict=True)]
    arrays["form"], arrays["ids"] = _bytes(_form()), _bytes("\n".join(run_ids).encode())
    arrays["mark"] = np.array([told.marks[i] if i else 0 for i in run_ids], dtype=np.int64)
    arrays["folder"] = np.array([told.folders[i] if i else 0 for i in run_ids], dtype=np.uint64)
    arrays["added"] = np.array([number_of_added(told.added(i)) if i else 0 for i in run_ids], dtype=np.int64)
    return arrays


def number_of_added(added: Added) -> int:
    """A number that tells what was added to a run from anything else, 0: nothing was."""
    if added is NOTHING_ADDED or added == NOTHING_ADDED:
        return 0
    extras, said = added.extras, added.said
    told = [list(extras.tags.items()), extras.notes, extras.usd_per_chip_hour, list(vars(added.where).values())]
    told += [said.name, said.mark, sorted(said.earlier), added.demo, sorted(added.groups)]
    return number_of(json.dumps(told))


def _form() -> bytes:
    return f"{_FORM} {answering()}".encode()


def _bytes(told: bytes) -> np.ndarray:
    return np.frombuffer(told, dtype=np.uint8)


def _compact(values: list[Any], codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the values that any has, as JSON, the first of them None; by row which of these it has)."""
    used = np.bincount(codes, minlength=len(values)) > 0
    used[0] = True
    told = json.dumps([values[n] for n in np.flatnonzero(used).tolist()]).encode()
    return _bytes(told), (np.cumsum(used) - 1)[codes].astype(np.int32)


def _kept(arrays: dict[str, np.ndarray]) -> Kept:
    """Raises where it is not what was written."""
    ids, found = arrays.pop("ids").tobytes().decode(), arrays
    run_ids = ids.split("\n") if ids else []
    texts = [name.removeprefix(_VALUES) for name in found if name.startswith(_VALUES)]
    values = {name: [_hashable(v) for v in json.loads(found.pop(_VALUES + name).tobytes())] for name in texts}
    same = [found.pop(name) for name in ("mark", "folder", "added")]
    found.pop("form")
    if any(len(column) != len(run_ids) for column in (*same, *found.values())):
        raise ValueError("columns of other lengths")
    if any(int(found[TEXT + name].max(initial=0)) >= len(values[name]) for name in texts):
        raise ValueError("a value that is not there")
    by_run = ({i: n for i, n in zip(run_ids, told.tolist(), strict=True) if i} for told in same)
    return Kept(run_ids, found, values, *by_run)


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value
