"""XProf's own tools for one run, behind this server's guard: a process of its own for each run, proxied under /xprof.

    /xprof/RUN                            the door: leads on to XProf, or says plainly why not and where else to look
    /xprof/RUN/data/plugin/profile/...    XProf itself

XProf may take gigabytes and may break: it runs apart, is ended when idle, and sees a folder with the traces of this
run alone. It writes caches beside its input, so that folder holds links, never the originals. It is asked only what
`xprof_routes` lists, opens no connection (`xprof_cage`), and is started for nobody whom a page of another site sent.
"""

import asyncio
import contextlib
import gzip
import http.client
import importlib.util
import os
import re
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import anyio
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from app.serve.guard import from_elsewhere
from app.serve.places import placeless
from app.serve.xprof_answers import must_be_read, read_answer
from app.serve.xprof_child import SECRET_HEADER
from app.serve.xprof_door import Closed, door_page
from app.serve.xprof_routes import target
from app.workspace import Workspace
from errors import ChipledgerError, QuestionError
from runs.registry import Registry
from runs.run import Run
from runs.scratch import Held
from runs.tables import frame

APP = "/data/plugin/profile"  # XProf's front end reads its own place from this part of the address
AT_ONCE = 2  # XProf processes; the one that was asked longest ago makes room
IDLE_SECONDS = 900.0
START_SECONDS = 60.0
ANSWER_SECONDS = 600.0
CHUNK = 1 << 16
PROJECT = Path(__file__).parents[2]
KEPT_HEADERS = (
    "content-type",
    "content-encoding",
    "content-length",
    "content-disposition",
    "cache-control",
    "content-security-policy",
)
TRACE = re.compile(r"(\.xplane\.(?:pb|riegeli))(?:\.gz)?$")
SESSIONS = "plugins/profile"  # where XProf looks for them, each a folder
TOLD = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "TZ")  # of our environment: no proxies, no keys


@dataclass
class Child:
    """An XProf process with its folder."""

    process: subprocess.Popen
    port: int
    secret: str
    folder: Path
    held: Held | None = None
    used: float = field(default_factory=time.monotonic)

    def sessions(self) -> set[str]:
        """The profiles that were laid out for it."""
        return {p.name for p in (self.folder / SESSIONS).iterdir()} if (self.folder / SESSIONS).is_dir() else set()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.held:
            self.held.end()


def missing() -> bool:
    return importlib.util.find_spec("xprof") is None


def traces(run: Run) -> list[dict[str, Any]]:
    """The run's inputs that XProf could read."""
    return [s for s in run.manifest.sources if TRACE.search(str(s.get("name", "")))]


def accelerator(run: Run) -> bool:
    """Whether a trace of the run saw an accelerator; XProf prints nearly nothing about others."""
    seen = frame(run.tables, "captures", ["device_type"])["device_type"].dropna().astype(str).str.casefold()
    return bool((seen != "cpu").any())


def lay_out(run: Run, registry: Registry, folder: Path) -> None:
    """A folder as XProf expects it, with links to the run's traces. Raises Closed where one of them is gone."""
    gone = []
    for number, source in enumerate(traces(run)):
        name = str(source["name"])
        if (path := registry.find_file(str(source["sha256"]))) is None:
            gone.append(name)
            continue
        parts = Path(name).parts
        session = re.sub(r"[^\w.-]", "_", parts[-2] if len(parts) > 1 else run.run_id[:12]).lstrip(".") or "session"
        host, ending, *_ = TRACE.split(parts[-1])
        host = re.sub(r"[^\w.-]", "_", host).lstrip(".") or "host"
        place = folder / SESSIONS / session / f"{host}-{number}{ending}"
        place.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".gz"):
            with gzip.open(path, "rb") as packed, place.open("wb") as plain:
                shutil.copyfileobj(packed, plain)
        else:
            place.symlink_to(path)
    if gone:
        raise Closed("gone", gone)


class XprofServers:
    """The XProf processes of this server. Safe for threads; nothing is started before it is asked for."""

    def __init__(self, place: Workspace):
        self._place = place
        self._children: dict[str, Child] = {}
        self._lock = threading.Lock()
        self._watch: threading.Timer | None = None

    def child(self, run: Run) -> Child:
        """The process for this run, started where there is none (some seconds). Raises Closed where it cannot be."""
        with self._lock:
            found = self._children.get(run.run_id)
            if found and found.process.poll() is None:
                found.used = time.monotonic()
                return found
            if found:
                self._children.pop(run.run_id).end()
            while len(self._children) >= AT_ONCE:
                oldest = min(self._children, key=lambda i: self._children[i].used)
                self._children.pop(oldest).end()
            started = self._children[run.run_id] = self._start(run)
            self._look_later()
            return started

    def _start(self, run: Run) -> Child:
        if missing():
            raise Closed("missing")
        held = self._place.store.hold()  # swept by the store where this process is killed
        folder = held.folder / "xprof"
        try:
            folder.mkdir()
            lay_out(run, self._place.registry, folder)
            child = _spawn(folder)
            child.held = held
            return child
        except BaseException as e:
            held.end()
            if isinstance(e, OSError | EOFError):
                raise Closed("failed", [placeless(str(e), self._place.store.root)]) from e
            raise

    def _look_later(self) -> None:
        if self._watch is None or not self._watch.is_alive():
            self._watch = threading.Timer(IDLE_SECONDS / 10, self._sweep)
            self._watch.daemon = True
            self._watch.start()

    def _sweep(self) -> None:
        """End what nobody has asked for a while."""
        with self._lock:
            now = time.monotonic()
            for run_id in [i for i, c in self._children.items() if now - c.used > IDLE_SECONDS]:
                self._children.pop(run_id).end()
            self._watch = None
            if self._children:
                self._look_later()

    def close(self) -> None:
        with self._lock:
            if self._watch is not None:
                self._watch.cancel()
            for child in self._children.values():
                child.end()
            self._children.clear()


def _spawn(folder: Path) -> Child:
    """Start XProf over a folder and wait until it listens. Raises Closed where it does not."""
    secret = secrets.token_hex(32)
    paths = [str(PROJECT), *filter(None, [os.environ.get("PYTHONPATH")])]
    kept = {name: os.environ[name] for name in TOLD if name in os.environ}
    process = subprocess.Popen(
        [sys.executable, "-m", "app.serve.xprof_child", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**kept, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert process.stdin is not None and process.stdout is not None
    timer = threading.Timer(START_SECONDS, process.kill)
    timer.start()
    try:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(secret + "\n")
            process.stdin.flush()  # left open: its end tells the child that this server is gone
        said = process.stdout.readline().strip()
    finally:
        timer.cancel()
    child = Child(process, int(said) if said.isdigit() else 0, secret, folder)
    if not child.port:
        child.end()
        raise Closed("failed", [f"it ended with code {process.returncode} before it answered"])
    return child


class Xprof:
    """The routes."""

    def __init__(self, place: Workspace):
        self._place = place
        self.servers = XprofServers(place)
        self._limit: anyio.CapacityLimiter | None = None

    def routes(self) -> list[Route]:
        return [
            Route("/xprof/{run_id}", self.door, methods=["GET"]),
            Route("/xprof/{run_id}" + APP + "{rest:path}", self.proxy, methods=["GET"]),
        ]

    async def door(self, request: Request) -> Response:
        """On to XProf, or a page of ours that says why not."""
        if from_elsewhere(request.headers):
            return door_page(None, Closed("elsewhere"), here=request.url.path)
        try:
            run = await self._in_thread(self._place.store.find, request.path_params["run_id"])
        except ChipledgerError as e:
            return door_page(None, Closed("unknown", [placeless(str(e), self._place.store.root)]))
        try:
            if not traces(run):
                raise Closed("no trace")
            if not accelerator(run) and "anyway" not in request.query_params:
                raise Closed("no accelerator")
            await self._in_thread(self.servers.child, run)
        except Closed as e:
            return door_page(run, e)
        return RedirectResponse(f"/xprof/{run.run_id}{APP}/", status_code=303)

    async def proxy(self, request: Request) -> Response:
        """One request to the run's XProf, passed on and streamed back."""
        if from_elsewhere(request.headers):
            return door_page(None, Closed("elsewhere"), here=request.url.path)
        query = parse_qsl(request.url.query, keep_blank_values=True)
        rest = request.path_params["rest"]
        if target(rest, query, {value for name, value in query if name == "run"}) is None:
            return _refused()  # whatever the run: nothing is started for it
        try:
            run = self._place.store.get(request.path_params["run_id"])
            if run is None:
                raise QuestionError("no such run")
            child = await self._in_thread(self.servers.child, run)
            asked = target(rest, query, child.sessions())
            if asked is None:
                return _refused()
            answer, connection = await self._in_thread(_asked, child, APP + asked)
        except (OSError, http.client.HTTPException) as e:
            error = placeless(f"XProf does not answer ({e})", self._place.store.root)
            return JSONResponse({"error": error}, status_code=502)
        except ChipledgerError as e:
            return JSONResponse({"error": placeless(str(e), self._place.store.root)}, status_code=404)
        kept = {n: v for n, v in answer.getheaders() if n.lower() in KEPT_HEADERS}
        if must_be_read(rest, answer.status):
            body = await self._in_thread(_whole, answer, connection, child)
            return read_answer(body, answer.status, kept, self._place.store.root)
        return StreamingResponse(_chunks(answer, connection, child), answer.status, kept)

    async def _in_thread(self, function: Any, *arguments: Any) -> Any:
        """In a thread of a pool of its own: XProf may take half a minute, and the pages must not wait for it."""
        if self._limit is None:
            self._limit = anyio.CapacityLimiter(8)
        return await anyio.to_thread.run_sync(function, *arguments, limiter=self._limit)

    async def close(self) -> None:
        await asyncio.to_thread(self.servers.close)


def _refused() -> Response:
    return JSONResponse({"error": "XProf is asked about this run only, and what its own pages ask"}, status_code=403)


def _asked(child: Child, asked: str) -> tuple[http.client.HTTPResponse, http.client.HTTPConnection]:
    connection = http.client.HTTPConnection("127.0.0.1", child.port, timeout=ANSWER_SECONDS)
    connection.request("GET", asked, headers={SECRET_HEADER: child.secret, "Accept-Encoding": "gzip"})
    return connection.getresponse(), connection


def _whole(answer: http.client.HTTPResponse, connection: http.client.HTTPConnection, child: Child) -> bytes:
    return b"".join(_chunks(answer, connection, child))


def _chunks(answer: http.client.HTTPResponse, connection: http.client.HTTPConnection, child: Child) -> Iterator[bytes]:
    try:
        while chunk := answer.read(CHUNK):
            yield chunk
    finally:
        child.used = time.monotonic()
        connection.close()
