"""Committing a run as objects: its files first, then its manifest, then the index."""

import contextlib
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from errors import InputError
from runs.integrity import Mark
from runs.objects.base import MissingError, Objects
from runs.objects.coming import gone
from runs.objects.index import COMMIT, Happened, Index, without_manifest
from runs.objects.keys import file_key, manifest_key, marked, pointer_key
from runs.objects.known import Known
from runs.run import MANIFEST, Manifest, Run
from runs.scratch import Held
from runs.writer import RunWriter

AT_ONCE = 4  # files go up
_LOOKS = 5  # at a manifest that comes and goes


class ObjectWriter(RunWriter):
    """Writes a run here first, as for a local store; `publish` brings it to its place."""

    def __init__(
        self,
        hold: Callable[[], Held],
        runs_folder: Path,
        publish: Callable[[Path, str, bool, bool, Mapping[str, str]], bool],
    ):
        super().__init__(hold, runs_folder)
        self._publish, self._copies = publish, False
        self._there: dict[str, str] = {}

    def take_there(self, relative: str, key: str, known: Mark) -> None:
        self._there[relative], self._taken[relative] = key, known

    def _synced(self) -> dict[str, Mark]:
        return super()._synced() | {relative: self._taken[relative] for relative in self._there}

    def copy(self, run: Run, cancel: Callable[[], None] = lambda: None) -> bool:
        self._copies = True
        return super().copy(run, cancel)

    def _place(self, target: Path, replace: bool) -> bool:
        return self._publish(self._folder, target.name, replace, self._copies, self._there)


class Publishing:
    """Brings the run in `folder` to its place. `copied`: from another store. Others may copy the same one, whose
    objects are these; or it lies here already. `there`: the keys under which files of it lie in the store by now, by
    their paths."""

    def __init__(
        self,
        store: Known,
        index: Index,
        folder: Path,
        run_id: str,
        copied: bool = False,
        there: Mapping[str, str] | None = None,
    ):
        self._objects: Objects = store.objects
        self._store, self._index, self._folder, self._run_id = store, index, folder, run_id
        self._copied, self._there = copied, there or {}
        self._raw = (folder / MANIFEST).read_bytes()
        self._manifest, self._mark = Manifest.from_json(self._raw, MANIFEST), marked(self._raw)
        self._keys = [file_key(run_id, self._mark, relative) for relative in sorted(self._manifest.marks)]

    def publish(self, replace: bool) -> bool:
        """Whether it is this one that is there then, and not one that came to be meanwhile."""
        if not replace and self._store.mark_here(self._run_id):
            return False
        pointed = False
        try:
            self._put_files()
            pointed = replace or self._pointed()
            placed = pointed and self._told(self._raw, self._mark, replace)
        except BaseException:
            if not pointed:  # else it is whole there, and the next who looks tells of it
                with contextlib.suppress(Exception):
                    self._take_back()
            raise
        if not placed:
            self._take_back()
        return placed

    def _put_files(self) -> None:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(self._put, self._keys, sorted(self._manifest.marks)))
        self._objects.create(manifest_key(self._run_id, self._mark), self._raw)

    def _put(self, key: str, relative: str) -> None:
        if (lies := self._there.get(relative)) is None:
            self._objects.put(key, self._folder / relative)
            return
        try:
            self._objects.copy(lies, key)
        except MissingError as e:
            raise gone(f"{self._objects.url}/{lies}") from e

    def _pointed(self) -> bool:
        """Put the manifest in its place unless one is there; then tell of that one, should nobody have done so."""
        key = pointer_key(self._run_id)
        for _ in range(_LOOKS):
            if self._objects.create(key, self._raw):
                return True
            with contextlib.suppress(MissingError):  # it was removed in this moment
                theirs = self._objects.read(key)
                if self._whole(marked(theirs)):
                    self._told(theirs, marked(theirs), replace=False)
                    return False
                self._objects.delete([key])
        raise InputError(
            "others write and remove this run at this moment", where=f"{self._objects.url}/{key}", advice="Ask again."
        )

    def _whole(self, mark: str) -> bool:
        """Whether that writing of the run was not taken away: its own manifest goes last."""
        try:
            self._objects.read(manifest_key(self._run_id, mark), 0, 1)
        except MissingError:
            return False
        return True

    def _told(self, raw: bytes, mark: str, replace: bool) -> bool:
        """Tell the index of this writing of the run, unless it tells of one already. Whether it is this one then."""

        def entry() -> Happened | None:
            here = self._store.mark_here(self._run_id)
            if here == mark or (here and not replace):
                return None
            told = Happened(
                do=COMMIT,
                run_id=self._run_id,
                mark=mark,
                at_ns=time.time_ns(),
                at=manifest_key(self._run_id, mark),
                manifest=raw.decode(),
            )
            return without_manifest(told)

        before = self._store.run_here(self._run_id) if replace else None
        with self._store.bringing(self._run_id, self._mark, self._folder):
            self._index.append(entry)
        placed = self._store.mark_here(self._run_id) == mark
        if placed and before is not None and before[0] != mark:
            self._in_place_of(before)
        return placed

    def _in_place_of(self, before: tuple[str, Manifest]) -> None:
        """Take away the objects of the writing before. Where that fails they are swept."""
        mark, manifest = before
        with contextlib.suppress(InputError):
            self._objects.delete([pointer_key(self._run_id)])
            self._objects.create(pointer_key(self._run_id), self._raw)
            keys = [file_key(self._run_id, mark, relative) for relative in manifest.marks]
            self._objects.delete([manifest_key(self._run_id, mark), *keys])

    def _take_back(self) -> None:
        """Nothing of this writing is needed, unless it is told of. Where that cannot be asked, and of what was copied,
        it is left to who sweeps."""
        if self._copied:
            return
        with contextlib.suppress(InputError, MissingError):
            self._index.follow()
            if self._store.known_mark(self._run_id) != self._mark:
                self._objects.delete([manifest_key(self._run_id, self._mark), *self._keys])
