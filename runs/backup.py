"""Backups of a store, made while it is used: each a whole copy, whose files that did not change are those of the one
before (hard links), and which says of every file what it was.

    <folder>/<moment>/backup.json       number, length and SHA-256 of each file, a checksum over all of it
    <folder>/<moment>/store/...         the store as it lay there, but for what can be made anew
    <folder>/.partial-<random>/         one that is being made; swept by whoever makes the next
    <folder>/.lock                      held by who makes or removes one

What is copied when keeps it consistent: first the registry, by SQLite's own backup, so that every run of which it tells
is still to come; then what is followed, cursors before what they point into; then runs, which never change, each held
against its own checksums; then uploads, which stay as long as their runs. A run that is moved, removed or read anew
meanwhile is looked for again.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import sqlite3
import time
import uuid
import zlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from errors import InputError
from errors import format as fmt
from errors.shapes import is_list, is_object
from runs.durable import PRIVATE, sync, write_whole
from runs.run import MANIFEST, Run
from runs.scratch import unlock
from runs.store import Store

LIST, STORE, REGISTRY = "backup.json", "store", "registry.db"
LEFT_OUT = ("partial", "derived", "serving")  # made anew, or of processes
SPARE_BYTES = 1 << 26  # left free beside a backup
_PIECE_BYTES = 1 << 20
_LOOKS = 5
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Entry:
    """A file of a backup. `mtime_ns`: when it was last written in the store, by which the next backup knows it."""

    bytes: int
    sha256: str
    mtime_ns: int


@dataclass(frozen=True, kw_only=True)
class Backup:
    """One backup. `number` counts on, whatever the clock says. `damaged`: what was damaged in the store by then, a
    sentence each. `copied_bytes`: of files that were not in the backup before."""

    name: str
    number: int
    made_ns: int
    runs: int
    files: dict[str, Entry] = field(repr=False)
    damaged: tuple[str, ...] = ()
    copied_bytes: int = 0

    @property
    def bytes(self) -> int:
        return sum(entry.bytes for entry in self.files.values())

    def to_dict(self) -> dict[str, Any]:
        """What commands tell of it: all but its files, which are counted."""
        return {**vars(self), "files": len(self.files), "bytes": self.bytes, "damaged": list(self.damaged)}


class Backups:
    """The backups in a folder."""

    def __init__(self, folder: Path):
        self.folder = folder.expanduser().absolute()

    def all(self) -> list[Backup]:
        """Those that are whole by their lists, the oldest first."""
        with contextlib.suppress(OSError):
            names = [p.name for p in self.folder.iterdir() if not p.name.startswith(".")]
            return sorted((b for n in names if (b := self._read(n)) is not None), key=lambda b: b.number)
        return []

    def find(self, name: str = "") -> Backup:
        """A backup by its name, or the newest. Raises InputError where there is none."""
        found = [b for b in self.all() if name in ("", b.name)]
        if not found:
            known = ", ".join(b.name for b in self.all()[-5:]) or "none yet"
            what = f"no backup {name[:80]!r} here" if name else "no backup here"
            raise InputError(what, where=str(self.folder), expected=known, advice="`chipledger backup` makes one.")
        return found[-1]

    def _read(self, name: str) -> Backup | None:
        """None for what is no backup, or whose list was damaged."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            told = json.loads((self.folder / name / LIST).read_text())
            checksum = told.pop("crc32")
            if checksum == _checksum(told) and is_object(told["files"]) and is_list(told["damaged"]):
                files = {path: Entry(**entry) for path, entry in told.pop("files").items()}
                return Backup(name=name, files=files, damaged=tuple(told.pop("damaged")), **told)
        return None

    def make(self, store: Store, registry: Path, progress: Progress | None = None) -> Backup:
        """Raises InputError where there is no room, where the folder cannot be written, or lies in the store."""
        self._apart(store.root)
        with _writing(self.folder), self._alone():
            partial = self.folder / f".partial-{uuid.uuid4().hex}"
            (partial / STORE).mkdir(mode=PRIVATE, parents=True)
            try:
                before = self.all()
                making = _Making(store, registry, self.folder, partial, before[-1] if before else None, progress)
                return self._keep(making, before, partial)
            except BaseException:
                shutil.rmtree(partial, ignore_errors=True)
                raise

    def _keep(self, making: "_Making", before: list[Backup], partial: Path) -> Backup:
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
        write_whole(partial / LIST, _as_json(made))
        for folder, _, _ in os.walk(partial):
            sync(Path(folder))
        partial.rename(self.folder / name)
        sync(self.folder)
        return made

    def remove_old(self, keep: int) -> list[str]:
        """Remove all but the newest `keep`. Returns the names of what is gone."""
        with _writing(self.folder), self._alone():
            old = self.all()[: -keep or None]
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
                length, digest = _hashed(root / relative)
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
        if (
            target.is_symlink()
            or (target.exists() and not target.is_dir())
            or (target.is_dir() and any(_names(target)))
        ):
            raise InputError(
                "the folder is not empty; nothing was restored",
                where=str(target),
                expected="an empty folder, or one that is not there",
                advice="A store that is there is never written over: move it away first, or name another folder.",
            )
        if target.is_relative_to(self.folder):
            raise InputError("the folder lies among the backups", where=str(target), expected="one outside of them")
        with _writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            _room(target.parent, backup.bytes)
            beside = target.with_name(f".{target.name}.restoring")
            shutil.rmtree(beside, ignore_errors=True)  # of one that was killed
            try:
                self._copy_back(backup, beside, progress)
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
                length, digest, _ = _copied(source / relative, beside / relative)
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


class _Making:
    """One backup while it is made, below `partial`."""

    def __init__(
        self,
        store: Store,
        registry: Path,
        folder: Path,
        partial: Path,
        before: Backup | None,
        progress: Progress | None,
    ):
        self._store, self._registry, self._root = store, registry, store.root
        self._out, self._progress = partial / STORE, progress
        self._before = before
        self._before_folder = folder / before.name / STORE if before else None
        self.files: dict[str, Entry] = {}
        self.damaged: list[str] = []
        self.runs = self.copied_bytes = self._done = self._total = 0

    def copy(self) -> None:
        self._total = self._room_for_it()
        self._copy_registry()
        self._copy_below("live")
        for run_id in self._run_ids():
            self.runs += self._copy_run(run_id)
        for name in sorted(_names(self._root)):
            if name not in (*LEFT_OUT, "live", "runs", "bin") and not name.startswith(REGISTRY):
                self._copy_below(name)
        for name in ("runs", "bin", "uploads"):
            (self._out / name).mkdir(mode=PRIVATE, exist_ok=True)

    def _room_for_it(self) -> int:
        """Bytes of what is there; raises InputError where what is new of it does not fit."""
        total = new = 0
        for name in _names(self._root):
            if name not in LEFT_OUT:
                for relative, told in _files(self._root, name):
                    total += told.st_size
                    new += 0 if self._known(relative, told) else told.st_size
        _room(self._out, new)
        return total

    def _copy_registry(self) -> None:
        target = self._out / REGISTRY
        if not self._registry.exists():
            return
        try:
            with (
                contextlib.closing(sqlite3.connect(f"{self._registry.as_uri()}?mode=ro", uri=True, timeout=30)) as db,
                contextlib.closing(sqlite3.connect(target)) as out,
            ):
                db.backup(out)
                out.execute("pragma journal_mode = delete")  # all of it in one file
                whole = [str(row) for (row,) in out.execute("pragma integrity_check(1)")]
        except sqlite3.Error as e:
            advice = "`chipledger doctor` says more; an older backup holds it as it was."
            raise InputError(f"the registry cannot be backed up ({e})", where=str(self._registry), advice=advice) from e
        target.chmod(0o600)
        if whole != ["ok"]:
            self.damaged.append(f"the registry is damaged ({whole[0][:200]})")
        sync(target)
        length, digest = _hashed(target)
        self._enter(REGISTRY, Entry(length, digest, target.stat().st_mtime_ns), length)

    def _run_ids(self) -> list[str]:
        """Of all runs, in the library and in the bin."""
        with self._store.bin.still():
            binned = [b.run.run_id for b in self._store.bin.runs()]
            return sorted({*self._store.ids(), *binned})

    def _copy_run(self, run_id: str) -> bool:
        """Whether the run was there. One that is moved or read anew meanwhile is copied again."""
        for _ in range(_LOOKS):
            with self._store.bin.still():
                at = next((p for p in ("runs", "bin") if (self._root / p / run_id).is_dir()), None)
            if at is None:
                return False
            state, marked = _state(self._root / at / run_id), dict(self.files)
            try:
                wrong = self._copy_whole_run(f"{at}/{run_id}")
            except FileNotFoundError:
                wrong = ["moved"]
            if not wrong or _state(self._root / at / run_id) == state:
                self.damaged += [problem for problem in wrong if problem != "moved"]
                return True
            shutil.rmtree(self._out / at / run_id, ignore_errors=True)
            self.files = marked
        return False

    def _copy_whole_run(self, below: str) -> list[str]:
        """What of it is not as its manifest says."""
        run = Run(self._root / below)
        try:
            marks = run.written.marks
        except InputError as e:
            marks, problem = {}, [str(e)]
        else:
            problem = list[str]()
        checksums: dict[str, str] = {}
        for relative, told in _files(self._root, below):
            checksums[relative.removeprefix(f"{below}/")] = self._copy_file(relative, told)
        (self._out / below).mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        told = (self._root / below).stat()
        os.utime(self._out / below, ns=(told.st_atime_ns, told.st_mtime_ns))
        for relative, mark in marks.items():
            if relative not in checksums:
                problem.append(f"{run.run_id}/{relative} is missing")
            elif mark and checksums[relative] not in ("", mark.crc32):
                problem.append(f"{run.run_id}/{relative} is not what was written (its checksum differs)")
        return problem

    def _copy_below(self, name: str) -> None:
        """A file or folder of the store that may change while it is copied: JSON first, which points into the rest."""
        found = sorted(_files(self._root, name), key=lambda one: (not one[0].endswith(".json"), one[0]))
        for relative, told in found:
            if relative.endswith((".part", ".lock")) or Path(relative).name.startswith("."):
                continue  # on its way, or of a process
            with contextlib.suppress(FileNotFoundError):
                self._copy_file(relative, told)

    def _copy_file(self, relative: str, told: os.stat_result) -> str:
        """Its CRC-32 where it was read; empty where the backup before has it."""
        target = self._out / relative
        target.parent.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        known = self._known(relative, told)
        if known and self._before_folder and self._before:
            with contextlib.suppress(OSError):  # a disk without links, or with too many of this file
                os.link(self._before_folder / known, target)
                self._enter(relative, self._before.files[known], 0)
                return ""
        length, digest, crc = _copied(self._root / relative, target)
        os.utime(target, ns=(told.st_mtime_ns, told.st_mtime_ns))
        self._enter(relative, Entry(length, digest, told.st_mtime_ns), length)
        return crc

    def _known(self, relative: str, told: os.stat_result) -> str | None:
        """Where the backup before has this file, unchanged since: a run that moved to the bin or back is known too."""
        if self._before is None or relative == REGISTRY:
            return None
        place, _, rest = relative.partition("/")
        other = {"runs": "bin", "bin": "runs"}.get(place)
        for path in (relative, *([f"{other}/{rest}"] if other else [])):
            entry = self._before.files.get(path)
            if entry and (entry.bytes, entry.mtime_ns) == (told.st_size, told.st_mtime_ns):
                return path
        return None

    def _enter(self, relative: str, entry: Entry, copied: int) -> None:
        self.files[relative] = entry
        self.copied_bytes += copied
        self._done += entry.bytes
        if self._progress:
            self._progress(self._done, max(self._done, self._total))


def _files(root: Path, name: str) -> Iterator[tuple[str, os.stat_result]]:
    """(path below the root, what it is) of every plain file below `name`; what vanishes meanwhile is passed over."""
    top = root / name
    if not top.is_dir() or top.is_symlink():
        walked = [(str(root), [], [name])] if top.is_file() and not top.is_symlink() else []
    else:
        walked = os.walk(top)
    for folder, folders, files in walked:
        folders.sort()
        for file in sorted(files):
            with contextlib.suppress(FileNotFoundError):
                path = Path(folder) / file
                if path.is_file() and not path.is_symlink():
                    yield path.relative_to(root).as_posix(), path.stat()


def _state(folder: Path) -> tuple[int, ...]:
    """What tells that a run was read anew, moved or removed."""
    try:
        told = (folder / MANIFEST).stat()
    except OSError:
        return (0,) if folder.is_dir() else ()
    return told.st_ino, told.st_mtime_ns, told.st_size


def _copied(source: Path, target: Path) -> tuple[int, str, str]:
    """(bytes, SHA-256, CRC-32) of what was copied; it is on disk when this returns."""
    digest, crc, length = hashlib.sha256(), 0, 0
    with source.open("rb") as f, open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        while piece := f.read(_PIECE_BYTES):
            digest.update(piece)
            crc, length = zlib.crc32(piece, crc), length + len(piece)
            out.write(piece)
        out.flush()
        os.fsync(out.fileno())
    return length, digest.hexdigest(), f"{crc:08x}"


def _hashed(path: Path) -> tuple[int, str]:
    with path.open("rb") as f:
        digest = hashlib.file_digest(f, "sha256").hexdigest()
        return f.tell(), digest


def _names(folder: Path) -> list[str]:
    return os.listdir(folder)


def _checksum(told: dict[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(told, sort_keys=True).encode()):08x}"


def _as_json(made: Backup) -> str:
    files = {path: vars(entry) for path, entry in made.files.items()}
    told = {**vars(made), "files": files, "damaged": list(made.damaged)}
    del told["name"]  # it is the folder's
    return json.dumps({**told, "crc32": _checksum(told)}, indent=0, sort_keys=True)


def _room(folder: Path, n_bytes: int) -> None:
    free = shutil.disk_usage(folder).free
    if n_bytes + SPARE_BYTES > free:
        raise InputError(
            f"{fmt.size(n_bytes)} do not fit: {fmt.size(free)} are free there",
            where=str(folder.parent.parent if folder.name == STORE else folder),
            advice="Remove old backups (`--keep`), or name a folder on another disk.",
        )


@contextlib.contextmanager
def _writing(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as e:
        raise InputError(
            f"cannot be written ({e.strerror or e})",
            where=str(path),
            advice="Is there room, and may this user write there?",
        ) from e
