"""One backup while it is made: what is copied when keeps it consistent, as `runs.backup` says."""

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from errors import InputError
from runs.backup_files import REGISTRY, STORE, Backup, Entry, copied, files_below, hashed, names, room
from runs.database import NOTE, At, Database
from runs.durable import PRIVATE, sync
from runs.objects.opening import address_of
from runs.postgres.moving import to_file
from runs.postgres.server import Server
from runs.run import MANIFEST, Run
from runs.store import Store

LEFT_OUT = ("partial", "derived", "serving")  # made anew, or of processes
ELSEWHERE = ("runs", "bin", "cached", "index.json", "index.lock")  # of a store of objects: they lie where those do
_LOOKS = 5
Progress = Callable[[int, int], None]


class Making:
    """One backup while it is made, below `partial`."""

    def __init__(
        self,
        store: Store,
        registry: At,
        folder: Path,
        partial: Path,
        before: Backup | None,
        progress: Progress | None,
    ):
        self._store, self._registry, self._root = store, registry, store.root
        self._out, self._progress = partial / STORE, progress
        self._before = before
        self._before_folder = folder / before.name / STORE if before else None
        self._elsewhere = address_of(store.root) is not None
        self._left_out = (*LEFT_OUT, *(ELSEWHERE if self._elsewhere else ()))
        self.files: dict[str, Entry] = {}
        self.damaged: list[str] = []
        self.runs = self.copied_bytes = self._done = self._total = 0

    def copy(self) -> None:
        self._total = self._room_for_it()
        self._copy_registry()
        self._copy_below("live")
        for run_id in self._run_ids():
            self.runs += self._copy_run(run_id)
        for name in sorted(names(self._root)):
            if name not in (*self._left_out, "live", "runs", "bin") and not name.startswith((REGISTRY, NOTE)):
                self._copy_below(name)
        for name in ("runs", "bin", "uploads"):
            (self._out / name).mkdir(mode=PRIVATE, exist_ok=True)

    def _room_for_it(self) -> int:
        """Bytes of what is there; raises InputError where what is new of it does not fit."""
        total = new = 0
        for name in names(self._root):
            if name not in self._left_out:
                for relative, told in files_below(self._root, name):
                    total += told.st_size
                    new += 0 if self._known(relative, told) else told.st_size
        room(self._out, new)
        return total

    def _copy_registry(self) -> None:
        target = self._out / REGISTRY
        if isinstance(self._registry, Server):
            to_file(self._registry, target)
        elif not isinstance(self._registry, Path) or not os.path.exists(self._registry):
            return
        elif damaged := Database(self._registry).copy_to(target):
            self.damaged.append(f"the registry is damaged ({damaged})")
        target.chmod(0o600)
        sync(target)
        length, digest = hashed(target)
        self._enter(REGISTRY, Entry(length, digest, target.stat().st_mtime_ns), length)

    def _run_ids(self) -> list[str]:
        """Of all runs, in the library and in the bin; of none that lie elsewhere, of which the index there tells."""
        if self._elsewhere:
            return []
        with self._store.bin.still():
            binned = [b.run.run_id for b in self._store.bin.runs()]
            return sorted({*self._store.ids(), *binned})

    def _copy_run(self, run_id: str) -> bool:
        """Whether the run was there. One that is moved or read anew meanwhile is copied again."""
        for _ in range(_LOOKS):
            with self._store.bin.still():
                at = next((p for p in ("runs", "bin") if os.path.isdir(self._root / p / run_id)), None)
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
        for relative, told in files_below(self._root, below):
            checksums[relative.removeprefix(f"{below}/")] = self._copy_file(relative, told)
        (self._out / below).mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        told = (self._root / below).stat()
        os.utime(self._out / below, ns=(told.st_atime_ns, told.st_mtime_ns))
        for relative, mark in marks.items():
            if relative not in checksums:
                problem.append(f"{run.run_id}/{relative} is missing")
            elif mark and checksums[relative] not in ("", mark.crc32):
                problem.append(_differs(f"{run.run_id}/{relative}"))
        return problem

    def _copy_below(self, name: str) -> None:
        """A file or folder of the store that may change while it is copied: JSON first, which points into the rest."""
        found = sorted(files_below(self._root, name), key=lambda one: (not one[0].endswith(".json"), one[0]))
        for relative, told in found:
            parts = Path(relative).parts
            sent = parts[0] == "uploads" and len(parts) > 3 and parts[2] == "files"  # under whatever name
            if not sent and (relative.endswith((".part", ".lock")) or Path(relative).name.startswith(".")):
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
        length, digest, crc = copied(self._root / relative, target)
        os.utime(target, ns=(told.st_mtime_ns, told.st_mtime_ns))
        self._enter(relative, Entry(length, digest, told.st_mtime_ns), length)
        return crc

    def _known(self, relative: str, told: os.stat_result) -> str | None:
        """Where the backup before has this file, unchanged since: a run that moved to the bin or back is known too. One
        that was damaged then is read again: it is damaged still, or was brought back from elsewhere with its time."""
        place, _, rest = relative.partition("/")
        if self._before is None or relative == REGISTRY or _differs(rest) in self._before.damaged:
            return None
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


def _differs(file: str) -> str:
    """What is told of a run's file, by its path from the folder of all runs."""
    return f"{file} is not what was written (its checksum differs)"


def _state(folder: Path) -> tuple[int, ...]:
    """What tells that a run was read anew, moved or removed."""
    try:
        told = (folder / MANIFEST).stat()
    except OSError:
        return (0,) if os.path.isdir(folder) else ()
    return told.st_ino, told.st_mtime_ns, told.st_size
