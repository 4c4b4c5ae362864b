"""The process of a job: `chipledger ingest`, `compile` or `capture`, held to limits, listened to, and ended.

`runs/limits.py` is what the process itself is held to by the system. What the system cannot hold is watched from here:
the wall clock, the memory and the number of all its processes together, what it says, and room on the disk.
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.cli.commands.ingest import PROGRESS_VARIABLE
from app.serve import process_tree
from app.serve.bounds import Bounds
from app.serve.job import plain
from errors import format as fmt
from runs.database import At
from runs.durable import PRIVATE
from runs.limits import NO_MEMORY, NO_NETWORK_VARIABLE, Limits
from runs.postgres.relay import VARIABLE as RELAY_VARIABLE
from runs.postgres.relay import relayed
from runs.postgres.sealed import Own
from runs.postgres.server import Server

PROJECT = Path(__file__).parents[2]
PROGRAM = ("-m", "app.cli")
GRACE_SECONDS = 5.0  # between being told to end and being ended
LOOK_SECONDS = 0.5
LINE_BYTES = 1 << 24
SAID_LINES, SAID_CHARACTERS = 50, 2000
ANSWER_BYTES = 64 << 20  # of its answer; one that is longer is none of ours
LEAST_FREE_BYTES = 1 << 28  # on the disk of the store: the registry has to be written still
JOB_OOM_SCORE = 500  # before the server, after XProf
ERROR = "error: "
KEPT_ENVIRONMENT = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "TZ", "USER", "VIRTUAL_ENV")
KEPT_BEGINNINGS = ("NUMBA_", "OMP_", "ARROW_", "PYTHON", "XDG_")


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a job's process ended. `code`: its exit code, below zero for the signal that ended it; `why`: which limit it
    was beyond, in words that follow `the ingest`, where it was."""

    code: int
    answer: dict[str, Any]
    why: str
    said: Sequence[str]


@dataclass
class JobProcess:
    """One process. `tell` hears each JSON object of progress or of a file that it says; `own`: of what it may say
    anything to a registry that is no file."""

    what: str
    arguments: Sequence[str]
    store: Path
    bounds: Bounds
    tell: Callable[[dict[str, Any]], None]
    sealed: bool = False
    registry: At | None = None
    own: Own | None = None
    why: str = ""
    said: list[str] = field(default_factory=list)
    process: asyncio.subprocess.Process | None = None
    ending: bool = False

    async def run(self, lock: int | None) -> Ended:
        """Start it and hear it to its end. `lock`: an open file that it keeps open as long as it lives. Raises OSError
        where it cannot be started."""
        with self._relay() as relay:
            return await self._run(lock, relay)

    def _relay(self) -> contextlib.AbstractContextManager[int | None]:
        """How a process that can open no connection asks a registry that is no file."""
        if not self.sealed or self.own is None or not isinstance(self.registry, Server):
            return contextlib.nullcontext()
        return relayed(self.registry, self.own)

    async def _run(self, lock: int | None, relay: int | None) -> Ended:
        with contextlib.suppress(OSError):  # what is not there cannot be let through the fence
            self.store.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        self.process = process = await asyncio.create_subprocess_exec(
            *self._limits().command(sys.executable, *PROGRAM, *self.arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self._environment(relay),
            limit=LINE_BYTES,
            start_new_session=True,
            pass_fds=[file for file in (lock, relay) if file is not None],
        )
        if self.ending:  # it was told to while the process was being made
            await self.end()
        watch = asyncio.create_task(self._watch(process))
        hears = asyncio.gather(self._answer(process), self._listen(process))
        try:
            while process.returncode is None and not hears.done():  # what it started may hold its pipes after it
                await asyncio.wait([hears], timeout=LOOK_SECONDS)
            if process.returncode is None:
                await process.wait()
        finally:
            watch.cancel()
            until = None if process.returncode is None else process_tree.now()
            await asyncio.to_thread(process_tree.kill, process.pid, until)  # what it left behind holds memory still
        answer, _ = await hears
        return self._ended(process.returncode or 0, answer)

    async def end(self) -> None:
        """Tell it to end, and end it where it does not."""
        self.ending, process = True, self.process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), GRACE_SECONDS)
        except TimeoutError:
            await asyncio.to_thread(process_tree.kill, process.pid)

    def named(self) -> str:
        """The process as another worker can find it once this one is gone."""
        mine, its = process_tree.seen(os.getpid()), self.process and process_tree.seen(self.process.pid)
        with contextlib.suppress(OSError):
            space = os.readlink("/proc/self/ns/pid")
            if mine and its:
                return json.dumps([space, mine.pid, mine.began, its.pid, its.began])
        return ""

    def _limits(self) -> Limits:
        bounds, folders = self.bounds, (str(self.store), tempfile.gettempdir())
        compiles = self.what == "compile"  # the compiler maps far more than it uses, and has limits of its own
        return Limits(
            data_bytes=None if compiles else bounds.memory_bytes,
            cpu_s=bounds.cpu_s,
            file_bytes=bounds.file_bytes,
            network=not self.sealed,
            sealed=self.sealed,
            writes=folders if self.what == "ingest" else None,
            reads=() if self.sealed else ("/",),
            parent=os.getpid(),
            first_to_go=JOB_OOM_SCORE,
        )

    def _environment(self, relay: int | None = None) -> dict[str, str]:
        """One that reads what strangers made is told nothing of ours: keys stand in environments."""
        paths = [str(PROJECT), *filter(None, [os.environ.get("PYTHONPATH")])]
        more = {"PYTHONPATH": os.pathsep.join(paths), PROGRESS_VARIABLE: "1"}
        if not self.sealed:
            return {**os.environ, **more}
        kept = {k: v for k, v in os.environ.items() if k in KEPT_ENVIRONMENT or k.startswith(KEPT_BEGINNINGS)}
        told = {} if relay is None else {RELAY_VARIABLE: str(relay)}
        return {**kept, **more, **told, NO_NETWORK_VARIABLE: "1"}

    async def _answer(self, process: asyncio.subprocess.Process) -> bytes:
        assert process.stdout is not None
        parts, size = [], 0
        while part := await process.stdout.read(1 << 16):
            size += len(part)
            if size <= ANSWER_BYTES:
                parts.append(part)
            else:
                self._stop(process, f"said more than {fmt.size(ANSWER_BYTES)} and was ended")
        return b"".join(parts)

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while True:
            try:
                raw = await process.stderr.readline()
            except ValueError:  # a line without end
                self._stop(process, f"said a line of more than {fmt.size(LINE_BYTES)} and was ended")
                continue
            if not raw:
                return
            line = raw.decode("utf-8", "replace").rstrip()
            if not self._told(line):
                self.said.append(line[:SAID_CHARACTERS])
                del self.said[:-SAID_LINES]

    def _told(self, line: str) -> bool:
        """Whether a line told progress or a file; if so, it is handed on."""
        if not line.startswith(('{"progress"', '{"file"')):
            return False
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
            self.tell(json.loads(line))
        return True

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        began = time.monotonic()
        while process.returncode is None:
            await asyncio.sleep(LOOK_SECONDS)
            family = await asyncio.to_thread(process_tree.family, process.pid)
            if why := self._beyond(time.monotonic() - began, family):
                self._stop(process, why)
                return

    def _beyond(self, wall_s: float, family: Sequence[process_tree.Seen]) -> str:
        """Which limit a job is beyond, in words that follow `the ingest`; empty while it is beyond none."""
        bounds, memory = self.bounds, sum(p.bytes for p in family)
        if wall_s > bounds.wall_s:
            return f"took longer than {bounds.wall} and was ended"
        if memory > bounds.memory_bytes and self.what != "compile":
            return f"took more than {fmt.size(bounds.memory_bytes)} of memory and was ended"
        if len(family) > bounds.processes and self.what != "compile":
            return f"started more than {bounds.processes} processes and was ended"
        with contextlib.suppress(OSError):
            if shutil.disk_usage(self.store).free < LEAST_FREE_BYTES:
                return f"was ended: less than {fmt.size(LEAST_FREE_BYTES)} are free on the disk of this store"
        return ""

    def _stop(self, process: asyncio.subprocess.Process, why: str) -> None:
        self.why = self.why or why
        process_tree.kill(process.pid)

    def _ended(self, code: int, answer: bytes) -> Ended:
        if code == 0 and not self.why:
            try:
                return Ended(code=0, answer=json.loads(answer), why="", said=self.said)
            except ValueError:
                return Ended(code=1, answer={}, why="ended without an answer", said=self.said)
        return Ended(code=code or 1, answer={}, why=self.why or self._of_a_limit(code), said=self.said)

    def _of_a_limit(self, code: int) -> str:
        """Which of the system's limits ended it, where one did."""
        bounds, last = self.bounds, "\n".join(self.said[-5:])
        if code == -signal.SIGXCPU:
            return f"took more than {bounds.cpu_s:,} s of processor time and was ended"
        if code == 2 and "File too large" in last:
            return f"wrote a file of more than {fmt.size(bounds.file_bytes)} and was ended"
        if code not in (0, 2) and any(word in last for word in NO_MEMORY):
            return f"took more than {fmt.size(bounds.memory_bytes)} of memory and was ended"
        return ""


def sentence(what: str, ended: Ended) -> str:
    """Why a job failed, and what to do."""
    return plain(_sentence(what, ended))


def _sentence(what: str, ended: Ended) -> str:
    kept, of_what = ("The files are kept", "files") if what == "ingest" else ("", "request")
    if ended.why:
        more = "let whoever runs the server allow more (`chipledger serve --help`: --job-memory-gb, --job-hours)"
        own = ", or read them with `chipledger ingest`, which has no such limit" if kept else ""
        return f"the {what} {ended.why}.{f' {kept}:' if kept else ''} {more if kept else _capital(more)}{own}"
    if ended.code == 2:
        errors = (s.removeprefix(ERROR) for s in reversed(ended.said) if s.startswith(ERROR))
        return next(errors, "the input was refused")
    kept = f" {kept}." if kept else ""
    if ended.code < 0:
        return f"the system ended the {what} (signal {-ended.code}), most likely for lack of memory.{kept}"
    last = ended.said[-1] if ended.said else f"exit code {ended.code}"
    return f"a defect of Chipledger, not of the {of_what} ({last}).{kept}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
