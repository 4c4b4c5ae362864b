"""Jobs of the server: each runs `chipledger ingest` or `chipledger compile` in a process of its own.

Whatever an input does to that process (bad bytes, too much memory), the server and its pages go on.
"""

import asyncio
import contextlib
import json
import os
import sys
import traceback
import uuid
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.cli.commands.ingest import PROGRESS_VARIABLE
from errors import QuestionError

AT_ONCE = {"ingest": 2, "compile": 1}  # jobs that run at the same time; more wait for their turn
KEPT = 500  # finished jobs that can still be asked for
GRACE_SECONDS = 5.0
PROJECT = Path(__file__).parents[2]
ERROR = "error: "


@dataclass
class Job:
    """One job. `what`: its command; `state`: waiting, running, done, failed or cancelled.

    `progress`: 0 to 1, None while unknown.
    """

    job_id: str
    what: str = "ingest"
    state: str = "waiting"
    progress: float | None = None
    doing: str = ""
    error: str = ""
    result: dict[str, Any] = field(default_factory=dict)
    process: asyncio.subprocess.Process | None = field(default=None, repr=False)
    task: asyncio.Task | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        return {
            "job_id": self.job_id,
            "state": self.state,
            "progress": self.progress,
            "doing": self.doing,
            "error": self.error or None,
            "run_id": self.result.get("run_id"),
            "tables": self.result.get("tables", {}),
            "warnings": self.result.get("warnings", []),
        }


class Jobs:
    """All jobs of this server, forgotten when it stops; the runs they made stay."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._turns = {what: asyncio.Semaphore(most) for what, most in AT_ONCE.items()}

    def start(self, arguments: list[str]) -> Job:
        """Begin `chipledger ARGUMENTS` (a command that prints its run with --json) as a job."""
        job = Job(uuid.uuid4().hex, arguments[0])
        self._jobs[job.job_id] = job
        for old in [i for i, j in self._jobs.items() if j.state not in ("waiting", "running")][:-KEPT]:
            del self._jobs[old]
        job.task = asyncio.create_task(self._run(job, arguments))
        return job

    def get(self, job_id: str) -> Job:
        if job_id not in self._jobs:
            advice = "If the server was restarted, the uploaded files are kept: add them again."
            raise QuestionError(f"no job {job_id[:40]!r}", advice=advice)
        return self._jobs[job_id]

    async def cancel(self, job_id: str) -> Job:
        """Stop a job. What it had read is thrown away, the uploaded files stay."""
        job = self.get(job_id)
        if job.state in ("waiting", "running"):
            job.state = "cancelled"
            await _end(job.process)
        return job

    async def close(self) -> None:
        for job in self._jobs.values():
            if job.state in ("waiting", "running"):
                await self.cancel(job.job_id)

    async def _run(self, job: Job, arguments: list[str]) -> None:
        async with self._turns[job.what]:
            if job.state == "cancelled":
                return
            job.state = "running"
            try:
                await self._child(job, arguments)
            except OSError as e:
                job.state, job.error = "failed", f"the {job.what} could not be started ({e.strerror})"
            except Exception as e:  # or the page would wait for it forever
                traceback.print_exc()
                job.state, job.error = "failed", _why(job.what, 1, [f"{type(e).__name__}: {e}"])

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
        if job.state == "cancelled":
            return
        if code == 0:
            job.result = json.loads(output)
            job.progress, job.state = 1.0, "done"
            return
        job.state, job.error = "failed", _why(job.what, code, said)
        if code != 2:
            print("\n".join(said), file=sys.stderr, flush=True)


def _progress(job: Job, line: str) -> bool:
    """Whether a line of the child's stderr told progress; if so, it is entered."""
    if not line.startswith('{"progress"'):
        return False
    with contextlib.suppress(ValueError):
        told = json.loads(line)
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
