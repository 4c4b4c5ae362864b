"""Who runs a job: a file of its own for each that runs, locked by the worker and by the process that it started.

    <store>/jobs/<job_id>.lock

The system lets go of the lock once both are gone, however they ended, and whatever a clock says. The files are made,
looked at and removed only while nobody else can change the book of jobs, so that none is locked that is being removed.
"""

import contextlib
import fcntl
import os
import time
import uuid
from pathlib import Path
from typing import Protocol

from runs.durable import PRIVATE
from runs.scratch import unlock

FOLDER = "jobs"
SILENT_S = 60.0  # a worker of another machine that said nothing for so long is gone, where its lock does not say so
ABSENT_S = 10.0  # the same of one whose connection to the registry is gone as well
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Presence(Protocol):
    """What shows workers to one another: held by each as long as its connection to the registry lives."""

    def hold(self, worker: str) -> None: ...
    def is_held(self, worker: str) -> bool: ...
    def leave(self) -> None: ...


def machine() -> str:
    """One kernel, since it was last started: two processes of it, in whatever containers, see each other's locks."""
    with contextlib.suppress(OSError):
        return _BOOT.read_text().strip()
    return f"{uuid.getnode():x}"


class JobLocks:
    """The locks of the jobs of a store, as one worker has them."""

    def __init__(self, store: Path, presence: Presence | None = None):
        self.folder = store / FOLDER
        self.worker = f"{machine()}:{uuid.uuid4().hex}"
        self._presence = presence
        self._held: dict[str, int] = {}
        self._silent: dict[str, tuple[tuple[str, int], float]] = {}  # (worker, beat) of a job, and since when it is

    def be_seen(self) -> None:
        """Have workers of other machines see that this one is there, where the registry can show it."""
        if self._presence:
            self._presence.hold(self.worker)

    def leave(self) -> None:
        if self._presence:
            self._presence.leave()

    def take(self, job_id: str) -> bool:
        """Have the lock of a job; whether nobody else has it. A disk that cannot lock leaves it to the beats."""
        self.folder.mkdir(mode=PRIVATE, exist_ok=True)
        file = os.open(self._path(job_id), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        except OSError:
            pass
        self._held[job_id] = file
        return True

    def file(self, job_id: str) -> int | None:
        """The open file that holds the lock, for the process of the job to have too."""
        return self._held.get(job_id)

    def drop(self, job_id: str) -> None:
        file = self._held.pop(job_id, None)
        if file is not None:
            self._remove(job_id)
            unlock(file)
            os.close(file)

    def gone(self, job_id: str, worker: str, beat: int) -> bool:
        """Whether who runs a job is gone, its process too. Of another machine, whose locks may not be seen here, only
        once nothing was heard of it for SILENT_S, by this process's own steady clock; or for ABSENT_S, where the
        registry sees that its worker is not connected any more."""
        silent_s = self._silent_s(job_id, (worker, beat))
        silent = silent_s > SILENT_S or (silent_s > ABSENT_S and self._absent(worker))
        locked = self._locked(job_id)
        if locked is None:
            return silent
        return not locked and (worker.partition(":")[0] == self.worker.partition(":")[0] or silent)

    def _absent(self, worker: str) -> bool:
        return self._presence is not None and not self._presence.is_held(worker)

    def forget(self, job_id: str) -> None:
        """A job whose worker was gone was given back."""
        self._silent.pop(job_id, None)
        self._remove(job_id)

    def _silent_s(self, job_id: str, told: tuple[str, int]) -> float:
        before, since_s = self._silent.get(job_id, (None, 0.0))
        if before != told:
            since_s = time.monotonic()
            self._silent[job_id] = (told, since_s)
        return time.monotonic() - since_s

    def _locked(self, job_id: str) -> bool | None:
        """None where the disk cannot tell."""
        try:
            file = os.open(self._path(job_id), os.O_RDWR)
        except FileNotFoundError:
            return False
        except OSError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            unlock(file)
            return False
        except BlockingIOError:
            return True
        except OSError:
            return None
        finally:
            os.close(file)

    def _path(self, job_id: str) -> Path:
        return self.folder / f"{job_id}.lock"

    def _remove(self, job_id: str) -> None:
        with contextlib.suppress(OSError):
            self._path(job_id).unlink()
