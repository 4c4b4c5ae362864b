"""Jobs of the server: each runs `chipledger ingest`, `compile` or `capture` in a process of its own.

Whatever an input does to that process (bad bytes, too much memory), the server and its pages go on.
"""

import asyncio
import contextlib
import json
import logging
import os
import sys
import time
import uuid
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.cli.commands.ingest import PROGRESS_VARIABLE
from app.identity.asking import who
from app.operations import logs
from errors import QuestionError

AT_ONCE = {"ingest": 2, "compile": 1, "capture": 2}  # jobs that run at the same time; more wait for their turn
MOST_WAITING = 1000  # jobs that have not ended; whoever asks for more is told, or they would fill memory
KEPT = 500  # finished jobs that can still be asked for
WITH_FILES = 20  # of these, the newest, whose files can: a list of thousands is not kept forever
LISTED = 50  # jobs of a list
GRACE_SECONDS = 5.0
STORED, LAST_WORDS_SECONDS = (
    "stored",
    60.0,
)  # what a job is doing whose run is there, and how long it may take to say so
PROJECT = Path(__file__).parents[2]
ERROR = "error: "


@dataclass
class Job:
    """One job. `what`: its command; `about`: what it was begun with, as the browser shows it; `state`: waiting,
    running, done, failed or cancelled. `progress`: 0 to 1, None while unknown. `who`: whoever began it.

    `files`: what was last told of each file, by name, with the number of that change.
    """

    job_id: str
    what: str = "ingest"
    state: str = "waiting"
    progress: float | None = None
    doing: str = ""
    error: str = ""
    about: dict[str, Any] = field(default_factory=dict)
    began_ns: int = field(default_factory=time.time_ns)
    ended_ns: int | None = None
    result: dict[str, Any] = field(default_factory=dict)
    who: str = ""
    files: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict, repr=False)
    changes: int = 0
    process: asyncio.subprocess.Process | None = field(default=None, repr=False)
    task: asyncio.Task | None = field(default=None, repr=False)

    @property
    def theirs(self) -> bool:
        """Whether whoever asks may learn of it: what others do is theirs alone, and admins'."""
        asks = who()
        return asks.sees_all or (bool(self.who) and self.who == asks.name)

    @property
    def ended(self) -> bool:
        return self.state not in ("waiting", "running")

    def to_dict(self) -> dict[str, Any]:
        """All but its files."""
        return {
            "job_id": self.job_id,
            "what": self.what,
            **self.about,
            "began_ns": self.began_ns,
            "ended_ns": self.ended_ns,
            "state": self.state,
            "progress": self.progress,
            "doing": self.doing,
            "error": self.error or None,
            "run_id": self.result.get("run_id"),
            "existed": bool(self.result.get("existed")),
            "tables": self.result.get("tables", {}),
            "warnings": self.result.get("warnings", []),
        }

    def with_files(self, since: int = 0) -> dict[str, Any]:
        """With each file that changed after the change `since`, and the number of the last change."""
        files = [told for number, told in self.files.values() if number > since]
        return {**self.to_dict(), "files": files, "files_changes": self.changes}

    def tell(self, file: dict[str, Any]) -> None:
        self.changes += 1
        self.files[str(file.get("name"))] = (self.changes, file)

    def end(self, state: str, error: str = "") -> None:
        self.state, self.error, self.ended_ns = state, error, time.time_ns()
        lasted_s = round((self.ended_ns - self.began_ns) / 1e9, 3)
        logs.tell("job_ended", job_id=self.job_id, what=self.what, state=state, duration_s=lasted_s)


class Jobs:
    """All jobs of this server, forgotten when it stops; the runs they made stay."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._turns = {what: asyncio.Semaphore(most) for what, most in AT_ONCE.items()}

    def start(self, arguments: list[str], about: dict[str, Any] | None = None) -> Job:
        """Begin `chipledger ARGUMENTS` (a command that prints its run with --json) as a job. Raises QuestionError where
        MOST_WAITING have not ended yet."""
        if sum(not j.ended for j in self._jobs.values()) >= MOST_WAITING:
            raise QuestionError(f"{MOST_WAITING:,} jobs run or wait already", advice="Ask again once some have ended.")
        job = Job(uuid.uuid4().hex, arguments[0], about=about or {}, who=who().name)
        self._jobs[job.job_id] = job
        ended = [j for j in self._jobs.values() if j.ended]
        for old in ended[:-WITH_FILES]:
            old.files.clear()
        for old in ended[:-KEPT]:
            del self._jobs[old.job_id]
        logs.tell("job_began", job_id=job.job_id, what=job.what, who=who().name or None)
        job.task = asyncio.create_task(self._run(job, arguments))
        return job

    def by_state(self) -> Counter[tuple[str, str]]:
        """How many jobs are remembered, by what they do and their state."""
        return Counter((j.what, j.state) for j in list(self._jobs.values()))

    def get(self, job_id: str) -> Job:
        if job_id not in self._jobs or not self._jobs[job_id].theirs:
            advice = "If the server was restarted, the uploaded files are kept: add them again."
            raise QuestionError(f"no job {job_id[:40]!r}", advice=advice)
        return self._jobs[job_id]

    def newest(self) -> list[Job]:
        """The jobs of whoever asks, the newest first."""
        return [job for job in self._jobs.values() if job.theirs][: -LISTED - 1 : -1]

    def reading(self) -> set[str]:
        """Uploads that a job reads, or waits for its turn to read."""
        return {str(j.about.get("upload_id")) for j in self._jobs.values() if not j.ended}

    async def cancel(self, job_id: str) -> Job:
        """Stop a job. What it had read is thrown away, the uploaded files stay; one that has stored its run by then is
        done, and says so."""
        job = self.get(job_id)
        if job.doing == STORED and job.task is not None:  # it only has to say which run
            await asyncio.wait([job.task], timeout=LAST_WORDS_SECONDS)
        if not job.ended:
            job.end("cancelled")
            await _end(job.process)
            if job.process is not None and job.task is not None:
                await asyncio.wait([job.task], timeout=GRACE_SECONDS)  # it hears what the process said last
        return job

    async def close(self) -> None:
        for job in self._jobs.values():
            if not job.ended:
                await self.cancel(job.job_id)

    async def _run(self, job: Job, arguments: list[str]) -> None:
        async with self._turns[job.what]:
            if job.state == "cancelled":
                return
            job.state = "running"
            try:
                await self._child(job, arguments)
            except OSError as e:
                job.end("failed", f"the {job.what} could not be started ({e.strerror})")
            except Exception as e:  # or the page would wait for it forever
                logs.tell_defect(e)
                job.end("failed", _why(job.what, 1, [f"{type(e).__name__}: {e}"]))

    async def _child(self, job: Job, arguments: list[str]) -> None:
        paths = [str(PROJECT), *filter(None, [os.environ.get("PYTHONPATH")])]
        job.process = process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "app.cli",
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), PROGRESS_VARIABLE: "1"},
            limit=1 << 24,
        )
        if job.state == "cancelled":  # while the process was being made
            await _end(process)
        said: list[str] = []

        async def listen() -> None:
            assert process.stderr is not None
            async for raw in process.stderr:
                line = raw.decode("utf-8", "replace").rstrip()
                if not _progress(job, line):
                    said.append(line)
                    del said[:-50]

        assert process.stdout is not None
        output, _ = await asyncio.gather(process.stdout.read(), listen())
        code = await process.wait()
        if job.state == "cancelled" and code != 0:
            return
        if code == 0:
            job.result = json.loads(output)
            job.progress = 1.0
            job.end("done")
            return
        job.end("failed", _why(job.what, code, said))
        if code != 2:
            logs.tell("job_said", level=logging.ERROR, job_id=job.job_id, traceback="\n".join(said))


def _progress(job: Job, line: str) -> bool:
    """Whether a line of the child's stderr told progress or a file; if so, it is entered."""
    if not line.startswith(('{"progress"', '{"file"')):
        return False
    with contextlib.suppress(ValueError):
        told = json.loads(line)
        if "file" in told:
            job.tell(told["file"])
        else:
            job.progress, job.doing = told["progress"], told.get("doing", "")
    return True


def _why(what: str, code: int, said: list[str]) -> str:
    kept, of_what = (" The files are kept.", "files") if what == "ingest" else ("", "request")
    if code == 2:
        errors = (s.removeprefix(ERROR) for s in reversed(said) if s.startswith(ERROR))
        return next(errors, "the input was refused")
    if code < 0:
        return f"the system ended the {what} (signal {-code}), most likely for lack of memory.{kept}"
    last = said[-1] if said else f"exit code {code}"
    return f"a defect of Chipledger, not of the {of_what} ({last}).{kept}"


async def _end(process: asyncio.subprocess.Process | None) -> None:
    if process is None or process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), GRACE_SECONDS)
        except TimeoutError:
            process.kill()
