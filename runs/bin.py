"""The bin: runs that were deleted and can be brought back, until they have lain there long enough.

    <store>/bin/<run_id>/     the run, whole, as it lay in `runs/`; the folder's time is when it came here
    <store>/bin.lock          held by who moves a run in or out

A run is moved by one rename: whatever is killed when, it lies whole in `runs/` or in the bin. That needs no room on
the disk. Should one lie in both (its files were ingested again in that moment), the one in `runs/` counts.
"""

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

from runs.derived import forget
from runs.durable import PRIVATE, sync, writing
from runs.run import Run
from runs.scratch import Held, unlock

KEPT_S = 30 * 86_400.0  # how long a run lies in the bin
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


@dataclass(frozen=True)
class Binned:
    """A run in the bin, and since when."""

    run: Run
    since_ns: int

    @property
    def until_ns(self) -> int:
        """When it goes for good."""
        return self.since_ns + int(KEPT_S * 1e9)


class Bin:
    """The bin of a store. `hold` gives a folder in which what goes for good is taken apart."""

    def __init__(self, root: Path, runs_folder: Path, hold: Callable[[], Held]):
        self.folder = root / "bin"
        self._runs, self._hold, self._lock = runs_folder, hold, root / "bin.lock"

    def make(self) -> None:
        """Raises OSError where it cannot be made."""
        self.folder.mkdir(mode=PRIVATE, exist_ok=True)
        os.close(os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o600))  # while there is room for it

    def put(self, run_id: str) -> bool:
        """Move a run here; False where it is not in the store. Raises InputError where the store cannot be written."""
        source, target = self._runs / run_id, self.folder / run_id
        with self._moving(source):
            if not self._is(self._runs, run_id):
                return False
            os.utime(source)  # the time that it came here, which no row has to tell
            if self.has(run_id):
                self._drop(target)
            source.rename(target)
            self._keep()
        forget(self.folder.parent, run_id)
        return True

    def restore(self, run_id: str) -> bool:
        """Move a run back; False where it is not here. One that is in the store meanwhile stays as it is there."""
        source, target = self.folder / run_id, self._runs / run_id
        with self._moving(source):
            if not self.has(run_id):
                return False
            if self._is(self._runs, run_id):
                self._drop(source)
            else:
                source.rename(target)
            self._keep()
        return True

    def remove(self, run_id: str) -> bool:
        """Take a run out of the bin for good; False where it is not here."""
        with self._moving(self.folder / run_id):
            there = self.has(run_id)
            if there:
                self._drop(self.folder / run_id)
        return there

    def empty(self, older_than_s: float = KEPT_S, within_s: float = float("inf")) -> list[str]:
        """Take those out for good that lie here longer, the oldest first, and those that are in the store as well.
        No new one is begun after `within_s`. Returns the ids of those that are gone."""
        gone: list[str] = []
        if older_than_s >= KEPT_S:  # else a person asks
            self._look()
        until, now_ns = time.monotonic() + within_s, time.time_ns()
        for binned in sorted(self.runs(), key=lambda b: b.since_ns):
            if time.monotonic() > until:
                break
            run_id, twice = binned.run.run_id, self._is(self._runs, binned.run.run_id)
            if (twice or now_ns - binned.since_ns > older_than_s * 1e9) and self._gone(run_id, older_than_s):
                gone.append(run_id)
        return gone

    def _look(self) -> None:
        """Note that somebody looked now. Where nobody did for as long as runs are kept, the clock was or is wrong, or
        the store lay unused: what lies here is kept from now on again. So is what came here at a time yet to be."""
        now_ns, seen_ns = time.time_ns(), _since_ns(self._lock)
        jumped = seen_ns is not None and abs(now_ns - seen_ns) > KEPT_S * 1e9
        with contextlib.suppress(OSError):  # on a disk that cannot be written nothing is emptied
            for binned in self.runs():
                if jumped or binned.since_ns > now_ns:
                    os.utime(self.folder / binned.run.run_id, ns=(now_ns, now_ns))
            if os.path.exists(self._lock):
                os.utime(self._lock, ns=(now_ns, now_ns))

    def _gone(self, run_id: str, older_than_s: float) -> bool:
        """Look again, now that nobody moves it; whether no run of this id is left."""
        path = self.folder / run_id
        with self._moving(path):
            since_ns, twice = _since_ns(path), self._is(self._runs, run_id)
            if since_ns is None or not (twice or time.time_ns() - since_ns > older_than_s * 1e9):
                return False
            self._drop(path)
            return not twice

    def has(self, run_id: str) -> bool:
        return self._is(self.folder, run_id)

    def get(self, run_id: str) -> Run | None:
        """The run, where it lies here and not in the store as well."""
        return Run(self.folder / run_id) if self.has(run_id) and not self._is(self._runs, run_id) else None

    def lying(self, run_id: str) -> Binned | None:
        """The run of this id, where it lies here."""
        since_ns = _since_ns(self.folder / run_id) if self.has(run_id) else None
        return None if since_ns is None else Binned(Run(self.folder / run_id), since_ns)

    def runs(self) -> list[Binned]:
        """All that lie here, those that came last first."""
        try:
            names = [p.name for p in self.folder.iterdir()]
        except OSError:  # a store of an earlier version on a disk that cannot be written
            return []
        found = [(n, _since_ns(self.folder / n)) for n in names if self.has(n)]
        binned = [Binned(Run(self.folder / name), since_ns) for name, since_ns in found if since_ns is not None]
        return sorted(binned, key=lambda b: -b.since_ns)

    @staticmethod
    def _is(folder: Path, run_id: str) -> bool:
        return RUN_ID.fullmatch(run_id) is not None and os.path.isdir(folder / run_id)

    def _drop(self, path: Path) -> None:
        """At once for whoever looks."""
        with self._hold() as held:
            path.rename(held.folder / "removed")

    def _keep(self) -> None:
        """Have the disk hold where it lies now. The run is whole in one of both either way."""
        with contextlib.suppress(OSError):
            for folder in (self.folder, self._runs):
                sync(folder)

    @contextlib.contextmanager
    def still(self) -> Generator[None]:
        """While nobody moves a run in or out: one that is looked for then lies in one of two places or in neither. Of
        a store that cannot be opened so, as it is."""
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(OSError):
                lock = stack.enter_context(self._lock.open("rb"))
                fcntl.flock(lock, fcntl.LOCK_SH)
                stack.callback(unlock, lock)
            yield

    @contextlib.contextmanager
    def _moving(self, what: Path) -> Generator[None]:
        """Alone with the bin. Raises InputError where the store cannot be written."""
        with writing(what), contextlib.ExitStack() as stack:
            self.folder.mkdir(mode=PRIVATE, exist_ok=True)
            lock = stack.enter_context(self._lock.open("ab"))
            with contextlib.suppress(OSError):  # a file system without locks: two who move one run at once may fail
                fcntl.flock(lock, fcntl.LOCK_EX)
            stack.callback(unlock, lock)
            yield


def _since_ns(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None
