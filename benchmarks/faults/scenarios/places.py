"""A server on a disk of its own, and what can be done to that disk while it serves."""

import contextlib
import ctypes
import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.faults.kills.acts import a_log
from benchmarks.faults.kills.servers import Server, ask

_CAPABILITIES, _BOUNDING_DROP = 0x20080522, 24
_OVER_FILES = (1, 2, 3)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER


@contextlib.contextmanager
def disk(folder: Path, size: str = "24m") -> Iterator[Path]:
    """A file system of its own, in memory, of so many bytes. Needs the right to mount."""
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0777", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


@contextlib.contextmanager
def serving(root: Path, before: Callable[[], None] = lambda: None, **environment: str) -> Iterator[Server]:
    """A server of this store. `before`: called in its process before anything else."""
    kept = dict(os.environ)

    def prepare() -> None:
        before()
        from app.serve import upload_room

        upload_room.SPARE_BYTES = 1 << 16  # or a small disk would always count as full

    os.environ.update(environment)
    try:
        server = Server(root, prepare)
    finally:
        os.environ.clear()
        os.environ.update(kept)
    try:
        yield server
    finally:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            server.kill()


def as_anybody() -> None:
    """Without the superuser's rights over files: to that a disk is never closed. What is started from here has none
    either."""
    system = ctypes.CDLL(None, use_errno=True)
    head, told = (ctypes.c_uint32 * 2)(_CAPABILITIES, 0), (ctypes.c_uint32 * 6)()
    if system.capget(head, told):
        raise OSError(ctypes.get_errno(), "capget")
    for right in _OVER_FILES:
        system.prctl(_BOUNDING_DROP, right, 0, 0, 0)
        for n in range(3):  # effective, permitted, inherited
            told[n] &= ~(1 << right)
    if system.capset(head, told):
        raise OSError(ctypes.get_errno(), "capset")


def few_files(most: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def upload(port: int, number: int, size: int = 0) -> tuple[int, Any]:
    """(status, answer) of the last request of an upload of one small log, or one of so many bytes."""
    status, told = ask(port, "POST", "/api/uploads")
    if status >= 300:
        return status, told
    data = a_log(number)
    data += b"#" * max(0, size - len(data))
    status, put = ask(port, "PUT", f"/upload/{told['upload_id']}/job-{number}.log", data)
    return (status, put) if status >= 300 else (status, told["upload_id"])


def ingest(port: int, upload_id: str) -> tuple[int, Any]:
    """(status, job) once it has ended."""
    import time

    status, job = ask(port, "POST", "/api/ingest", {"upload_id": upload_id})
    while status < 300 and job["state"] in ("waiting", "running"):
        time.sleep(0.1)
        status, job = ask(port, "GET", f"/api/jobs/{job['job_id']}")
    return status, job


def a_run(port: int, number: int) -> str:
    """The id of a run that was just made."""
    status, upload_id = upload(port, number)
    assert status < 300, upload_id
    status, job = ingest(port, upload_id)
    assert status < 300 and job["state"] == "done", job
    return job["run_id"]


def fill(folder: Path) -> Path:
    """Leave no byte free."""
    path = folder / "filler"
    with contextlib.suppress(OSError), path.open("wb") as f:
        while True:
            f.write(b"\0" * 4096)
            f.flush()
    for n in range(64):  # and no file
        with contextlib.suppress(OSError), (folder / f"filler-{n}").open("wb") as f:
            f.write(b"\0" * 4096)
    assert shutil.disk_usage(folder).free < 4096
    return path


def freed(folder: Path) -> None:
    for path in folder.glob("filler*"):
        path.unlink()
