"""What a program asks of a server."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from app.client.door import PATIENCE_S, Door, Refused, part
from app.client.local import Progress, found, hashed, key_of
from app.client.sending import send
from errors import InputError

POLL_S, MOST_POLL_S = 0.3, 2.0
TRIES, GONE = 3, 404
ENDED = ("done", "failed", "cancelled")


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job of the server. `state`: waiting, running, done, failed or cancelled; `existed`: the run was there."""

    job_id: str
    state: str
    progress: float | None
    doing: str
    error: str
    run_id: str
    existed: bool
    warnings: tuple[str, ...]

    @property
    def ended(self) -> bool:
        return self.state in ENDED


@dataclass(frozen=True, kw_only=True)
class Pushed:
    """What was sent. `sent_bytes`: those that the server did not hold before; `job_id`: the job that reads it, `said`:
    what it was told of the run."""

    upload_id: str
    job_id: str
    files: int
    n_bytes: int
    sent_bytes: int
    said: Mapping[str, Any] = field(default_factory=dict)


class Client:
    """A server at an address, with a token where it asks for one. Everything raises InputError or QuestionError, each
    in one sentence; what a short absence of the server breaks is tried again for `patience_s`."""

    def __init__(self, url: str, token: str = "", *, plain: bool = False, patience_s: float = PATIENCE_S):
        self._door = Door(url, token, plain=plain, patience_s=patience_s)

    @property
    def url(self) -> str:
        return self._door.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._door.close()

    def push(self, paths: Iterable[str | Path], *, progress: Progress | None = None, **said: Any) -> Pushed:
        """Send files and folders, and have them read into one run. `said`: what files cannot tell, by the names of the
        fields of `POST /api/ingest` (`name`, `chip`, `chips`, `model`, `tags` ...). What of it the server holds from an
        earlier try is not sent again."""
        tell = progress or (lambda done, total, what: None)
        files = found([Path(p) for p in paths])
        if not files:
            raise InputError("nothing to send", expected="a file or a folder")
        total = sum(f.n_bytes for f in files)
        read = _counting(tell, total, "Reading")
        files = [hashed(file, read) for file in files]
        begun = self._door.json("POST", "/api/uploads", {"key": key_of(files)})
        with self._door.understanding():
            upload_id = str(begun["upload_id"])
        total, done, sent = sum(f.n_bytes for f in files), 0, 0
        there = self._there(upload_id)
        for file in files:
            if (file.name, file.n_bytes, file.sha256) not in there:
                sent += send(
                    self._door, upload_id, file, lambda n, f=file, d=done: tell(d + n, total, f"Sending {f.name}")
                )
            done += file.n_bytes
        job = self.ingest(upload_id, **said)
        return Pushed(
            upload_id=upload_id, job_id=job.job_id, files=len(files), n_bytes=total, sent_bytes=sent, said=said
        )

    def _there(self, upload_id: str) -> set[tuple[str, int, str]]:
        """What of an upload arrived whole before: name, bytes and SHA-256."""
        told = self._door.json("GET", f"/api/uploads/{part(upload_id)}/files")
        with self._door.understanding():
            return {(f["name"], f["bytes"], f["sha256"]) for f in told["files"] if f["whole"]}

    def ingest(self, upload_id: str, **said: Any) -> Job:
        """Have an upload read into a run."""
        given = {name: value for name, value in said.items() if value is not None}
        return self._job(self._door.json("POST", "/api/ingest", {"upload_id": upload_id, **given}))

    def job(self, job_id: str) -> Job:
        """A job as it is now."""
        return self._job(self._door.json("GET", f"/api/jobs/{part(job_id)}"))

    def _job(self, told: Mapping[str, Any]) -> Job:
        with self._door.understanding():
            return _job(told)

    def wait(self, job: "str | Pushed", *, progress: Callable[[Job], None] | None = None) -> Job:
        """A job once it has ended; of what was pushed, begun anew where the server was, and forgot it. Raises
        InputError where it failed or was cancelled."""
        if isinstance(job, str):
            return self._ended(job, progress)
        job_id = job.job_id
        for _ in range(TRIES):
            try:
                return self._ended(job_id, progress)
            except Refused as e:
                if e.status != GONE:
                    raise
                job_id = self.ingest(job.upload_id, **job.said).job_id
        return self._ended(job_id, progress)

    def _ended(self, job_id: str, progress: Callable[[Job], None] | None) -> Job:
        pause_s = POLL_S
        while not (job := self.job(job_id)).ended:
            if progress:
                progress(job)
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.2, MOST_POLL_S)
        if job.state != "done":
            raise InputError(job.error or "the job was cancelled", where=f"job {job_id}")
        return job

    def runs(self, q: str = "", **options: Any) -> list[dict[str, Any]]:
        """The runs of the library, newest first, or those that a search finds."""
        told = self._door.json("GET", "/api/runs", query={**({"q": q} if q else {}), **options})
        with self._door.understanding():
            return told["runs"]

    def run(self, run: str) -> dict[str, Any]:
        """What is known of a run, by its id or name."""
        return self._door.json("GET", f"/api/runs/{part(run)}")

    def show(self, run: str, question: str, **options: Any) -> dict[str, Any]:
        """The answer to a question about a run."""
        return self._door.json("GET", f"/api/runs/{part(run)}/show/{part(question)}", query=options)

    def page_of(self, run_id: str) -> str:
        """The address of a run's page."""
        return f"{self.url}/findings?run={part(run_id)}"


def _counting(tell: Progress, total: int, what: str) -> Callable[[int], None]:
    done = 0

    def more(n_bytes: int) -> None:
        nonlocal done
        done += n_bytes
        tell(done, total, what)

    return more


def _job(told: Mapping[str, Any]) -> Job:
    return Job(
        job_id=str(told["job_id"]),
        state=str(told["state"]),
        progress=told.get("progress"),
        doing=str(told.get("doing") or ""),
        error=str(told.get("error") or ""),
        run_id=str(told.get("run_id") or ""),
        existed=bool(told.get("existed")),
        warnings=tuple(map(str, told.get("warnings") or ())),
    )


__all__ = ["Client", "Job", "Pushed", "Refused"]
