"""Backups of a store, made while it is used: each a whole copy, whose files that did not change are those of the one
before (hard links), and which says of every file what it was.

    <folder>/<moment>/backup.json       number, length and SHA-256 of each file, a checksum over all of it
    <folder>/<moment>/store/...         the store as it lay there, but for what can be made anew
    <folder>/.partial-<random>/         one that is being made; swept by whoever makes the next
    <folder>/.lock                      held by who makes or removes one

What is copied when keeps it consistent: first the registry, by SQLite's own backup or as a file made of one
moment of PostgreSQL, so that every run of which it tells
is still to come; then what is followed, cursors before what they point into; then runs, which never change, each held
against its own checksums; then uploads, which stay as long as their runs. A run that is moved, removed or read anew
meanwhile is looked for again.
"""

import contextlib
import fcntl
import json
import os
import shutil
import time
import uuid
from collections.abc import Generator
from pathlib import Path

from errors import InputError
from errors.shapes import is_list, is_object
from runs.backup_files import LIST, STORE, Backup, Entry, as_json, checksum_of, copied, hashed, names, room, writing_to
from runs.backup_making import Making, Progress
from runs.database import At
from runs.durable import PRIVATE, sync, write_whole
from runs.scratch import unlock
from runs.store import Store

RESTORING = ".restoring"
OF_A_VOLUME = {RESTORING, "lost+found"}  # what may lie in one that is empty


def _move_up(beside: Path, target: Path) -> None:
    """What lies in a folder of `target`, into `target`: the runs last, without which a store holds nothing."""
    for name in sorted(names(beside), key=lambda name: name == "runs"):
        (beside / name).rename(target / name)
    beside.rmdir()


class Backups:
    """The backups in a folder."""

    def __init__(self, folder: Path):
        self.folder = folder.expanduser().absolute()

    def all(self) -> list[Backup]:
        """Those that are whole by their lists, the oldest first."""
        with contextlib.suppress(OSError):
            there = [p.name for p in self.folder.iterdir() if not p.name.startswith(".")]
            return sorted((b for n in there if (b := self._read(n)) is not None), key=lambda b: b.number)
        return []

    def unreadable(self) -> list[str]:
        """Names of those whose list is damaged or gone, in their order."""
        with contextlib.suppress(OSError):
            made = {p.name for p in self.folder.iterdir() if not p.name.startswith(".") and (p / STORE).is_dir()}
            return sorted(made - {b.name for b in self.all()})
        return []

    def find(self, name: str = "") -> Backup:
        """A backup by its name, or the newest. Raises InputError where there is none, or its list is damaged: an older
        one is not taken for it."""
        found = [b for b in self.all() if name in ("", b.name)]
        known = ", ".join(b.name for b in self.all()[-5:]) or "none yet"
        damaged = [n for n in self.unreadable() if name == n or (not name and (not found or n > found[-1].name))]
        if damaged:
            raise InputError(
                f"the list of {'' if name else 'the newest backup, '}{damaged[-1]} is damaged",
                where=str(self.folder / damaged[-1] / LIST),
                expected="what `chipledger backup` wrote there",
                advice=f"Name another by `--of`: {known}. The files of this one lie in its folder {STORE}.",
            )
        if not found:
            what = f"no backup {name[:80]!r} here" if name else "no backup here"
            raise InputError(what, where=str(self.folder), expected=known, advice="`chipledger backup` makes one.")
        return found[-1]

    def _read(self, name: str) -> Backup | None:
        """None for what is no backup, or whose list was damaged."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            told = json.loads((self.folder / name / LIST).read_text())
            checksum = told.pop("crc32")
            if checksum == checksum_of(told) and is_object(told["files"]) and is_list(told["damaged"]):
                files = {path: Entry(**entry) for path, entry in told.pop("files").items()}
                return Backup(name=name, files=files, damaged=tuple(told.pop("damaged")), **told)
        return None

    def make(self, store: Store, registry: At, progress: Progress | None = None) -> Backup:
        """Raises InputError where there is no room, where the folder cannot be written, or lies in the store."""
        self._apart(store.root)
        with writing_to(self.folder), self._alone():
            partial = self.folder / f".partial-{uuid.uuid4().hex}"
            (partial / STORE).mkdir(mode=PRIVATE, parents=True)
            try:
                before = self.all()
                making = Making(store, registry, self.folder, partial, before[-1] if before else None, progress)
                return self._keep(making, before, partial)
            except BaseException:
                shutil.rmtree(partial, ignore_errors=True)
                raise

    def _keep(self, making: "Making", before: list[Backup], partial: Path) -> Backup:
        making.copy()
        made_ns = time.time_ns()
        name = stem = time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime(made_ns / 1e9))
        again = 1
        while (self.folder / name).exists():  # a clock that was set back, or two within a second
            again += 1
            name = f"{stem}-{again}"
        made = Backup(
            name=name,
            number=before[-1].number + 1 if before else 1,
            made_ns=made_ns,
            runs=making.runs,
            files=making.files,
            damaged=tuple(making.damaged),
            copied_bytes=making.copied_bytes,
        )
        write_whole(partial / LIST, as_json(made))
        for folder, _, _ in os.walk(partial):
            sync(Path(folder))
        partial.rename(self.folder / name)
        sync(self.folder)
        return made

    def remove_old(self, keep: int) -> list[str]:
        """Remove all but the newest `keep`, and the newest of a store in which nothing was damaged: where something was
        in all of those, that one holds the last whole copy of it. Returns the names of what is gone."""
        with writing_to(self.folder), self._alone():
            there = self.all()
            whole = [b.name for b in there if not b.damaged][-1:] if keep else []
            spared = {*(b.name for b in there[max(len(there) - keep, 0) :]), *whole}
            old = [b for b in there if b.name not in spared]
            for backup in old:
                gone = self.folder / f".partial-{uuid.uuid4().hex}"
                (self.folder / backup.name).rename(gone)  # at once for whoever looks
                shutil.rmtree(gone, ignore_errors=True)
        return [backup.name for backup in old]

    def verify(self, backup: Backup, progress: Progress | None = None) -> list[str]:
        """What is missing or another than was written, a sentence each: every byte is read."""
        root, problems, done = self.folder / backup.name / STORE, list[str](), 0
        for relative, entry in sorted(backup.files.items()):
            try:
                length, digest = hashed(root / relative)
            except OSError as e:
                problems.append(f"{relative} cannot be read ({e.strerror})")
                continue
            if length != entry.bytes:
                problems.append(f"{relative} is {length:,} bytes long, {entry.bytes:,} were written")
            elif digest != entry.sha256:
                problems.append(f"{relative} is not what was written (its checksum differs)")
            done += entry.bytes
            if progress:
                progress(done, backup.bytes)
        return problems

    def restore(self, backup: Backup, target: Path, progress: Progress | None = None) -> None:
        """Make a store of a backup in a folder that is empty or not there: whole, or not at all. Raises InputError for
        a folder that holds anything, and for a backup that is damaged."""
        target = target.expanduser().absolute()
        there = set(names(target)) if target.is_dir() else set[str]()
        if target.is_symlink() or (target.exists() and not target.is_dir()) or there - OF_A_VOLUME:
            raise InputError(
                "the folder is not empty; nothing was restored",
                where=str(target),
                expected="an empty folder, or one that is not there",
                advice="A store that is there is never written over: move it away first, or name another folder.",
            )
        if target.is_relative_to(self.folder):
            raise InputError("the folder lies among the backups", where=str(target), expected="one outside of them")
        with writing_to(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            room(target.parent, backup.bytes)
            mounted = os.path.ismount(target)  # such as a container's volume, which nothing can be put in the place of
            beside = target / RESTORING if mounted else target.with_name(f".{target.name}.restoring")
            shutil.rmtree(beside, ignore_errors=True)  # of one that was killed
            try:
                self._copy_back(backup, beside, progress)
                if mounted:
                    _move_up(beside, target)
                else:
                    beside.rename(target)
            except BaseException:
                shutil.rmtree(beside, ignore_errors=True)
                raise
            sync(target.parent)

    def _copy_back(self, backup: Backup, beside: Path, progress: Progress | None) -> None:
        beside.mkdir(mode=PRIVATE)
        source, done = self.folder / backup.name / STORE, 0
        for folder, folders, _ in os.walk(source):  # empty ones as well
            for name in folders:
                (beside / Path(folder).relative_to(source) / name).mkdir(mode=PRIVATE)
        for relative, entry in backup.files.items():
            try:
                length, digest, _ = copied(source / relative, beside / relative)
            except FileNotFoundError:
                length, digest = -1, ""
            if (length, digest) != (entry.bytes, entry.sha256):
                raise InputError(
                    f"the backup is damaged ({relative} is not what was written); nothing was restored",
                    where=backup.name,
                    advice="`chipledger backup FOLDER --verify` tells all that is; an older backup may be whole.",
                )
            os.utime(beside / relative, ns=(entry.mtime_ns, entry.mtime_ns))
            done += entry.bytes
            if progress:
                progress(done, backup.bytes)
        for folder, _, _ in os.walk(beside):
            sync(Path(folder))
        self._times(source, beside)

    @staticmethod
    def _times(source: Path, beside: Path) -> None:
        """When runs came to the bin stands in their folders' times."""
        for run in (source / "bin").glob("*"):
            told = run.stat()
            os.utime(beside / "bin" / run.name, ns=(told.st_atime_ns, told.st_mtime_ns))

    def _apart(self, root: Path) -> None:
        here, there = self.folder.resolve(), root.resolve()
        if here == there or here.is_relative_to(there) or there.is_relative_to(here):
            raise InputError(
                "a backup beside what it backs up would be lost with it",
                where=str(self.folder),
                expected="a folder outside of the store, best on another disk",
            )

    @contextlib.contextmanager
    def _alone(self) -> Generator[None]:
        """While no other process makes or removes a backup here; what one left half made is swept."""
        self.folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        with (self.folder / ".lock").open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as e:
                advice = "Wait until that one is done."
                raise InputError("another backup is being made here", where=str(self.folder), advice=advice) from e
            try:
                for left in self.folder.glob(".partial-*"):
                    shutil.rmtree(left, ignore_errors=True)
                yield
            finally:
                unlock(lock)
