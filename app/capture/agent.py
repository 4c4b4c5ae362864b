"""Lets a running PyTorch or JAX job be profiled on demand. One file without dependencies, for Python 3.10 on.

    chipledger capture --print-agent > chipledger_agent.py

Without a change of the job's code, `CHIPLEDGER_CAPTURE=127.0.0.1:9012 python chipledger_agent.py train.py ...` runs it
with the agent beside it (`-m MODULE` works too). With one line:

    import chipledger_agent
    agent = chipledger_agent.serve("127.0.0.1:9012")

Steps of PyTorch are counted at the job's optimizers; of JAX, or where an optimizer steps more than once, by a call
of `agent.step()` at the end of each step. Nothing is recorded until somebody asks who knows the token
($CHIPLEDGER_CAPTURE_TOKEN, 16 characters or more), and the agent does nothing where address or token is missing. Ranks
of one machine listen on ports that follow each other: the port given plus $LOCAL_RANK.

    POST /capture {"steps": 5} or {"duration_s": 2}, `Authorization: Bearer TOKEN` -> the trace

One capture at a time, bounded in steps, time and bytes; who hangs up ends it. Whatever goes wrong here is told on
stderr or to who asked, and never ends the job.
"""

from __future__ import annotations

import atexit
import contextlib
import gzip
import hmac
import json
import os
import runpy
import select
import shutil
import socket
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

LISTEN, TOKEN = "CHIPLEDGER_CAPTURE", "CHIPLEDGER_CAPTURE_TOKEN"
LEAST_TOKEN = 16  # characters
MOST_STEPS, MOST_SECONDS = 1000, 600.0
WAIT_SECONDS = 600.0  # for the steps of one capture to come
LEAVE_SECONDS = 30.0  # at most, for a capture to end where the job does
LAST_STEP_SECONDS = 10.0  # a capture of seconds waits for the end of the step that runs then
MOST_BYTES = 4 << 30  # of a trace as it is sent
REQUEST_BYTES, REQUEST_SECONDS = 4096, 10.0
MOST_CONNECTIONS = 8
LOOK_SECONDS = 0.1
NAME = "X-Chipledger-Name"


class Refused(Exception):
    """What is told to who asked, with a status of HTTP."""

    def __init__(self, status: int, why: str):
        self.status = status
        super().__init__(why)


class Agent:
    """What a job holds. `step` is called at the end of each step; a count and a comparison where nobody asks."""

    def __init__(self, marks: bool = True):
        self.steps = 0
        self.port = 0  # at which it answers; 0: it does not
        self.answering: set[int] = set()  # threads
        self._marks, self._called, self._hooked = marks, False, False
        self._first: Any = None  # the optimizer whose steps count
        self._capture: _Capture | None = None
        self._one_at_a_time = threading.Lock()

    def step(self) -> None:
        """A step has ended, in the thread that calls."""
        self._called = True
        self._stepped()

    def watch(self) -> None:
        """Count the steps of PyTorch's optimizers, once that is loaded."""
        register = getattr(sys.modules.get("torch.optim.optimizer"), "register_optimizer_step_post_hook", None)
        if register is not None and not self._hooked:
            self._hooked = True
            register(self._optimizer_stepped)

    def _optimizer_stepped(self, optimizer: Any, *_: Any) -> None:
        """Of several optimizers the first counts; none where the job calls `step` itself."""
        if self._first is None:
            self._first = id(optimizer)
        if not self._called and id(optimizer) == self._first:
            self._stepped()

    def _stepped(self) -> None:
        self.steps += 1
        capture = self._capture
        if capture is not None:
            capture.stepped(self.steps)

    def capture(self, asked: dict[str, Any], gone: Any, folder: Path) -> Path:
        """The trace, as a file in `folder`. Raises Refused. `gone()`: whether who asked has hung up."""
        steps, seconds, stacks = _wanted(asked)
        if not self._one_at_a_time.acquire(blocking=False):
            raise Refused(409, "a capture is being taken here already")
        try:
            if self._capture is not None:
                raise Refused(409, "a capture that was given up ends with the job's next step")
            self.watch()
            made = _Capture(_tracer(folder, steps is None, stacks), steps, self._marks)
            self._capture = made
            try:
                made.take(seconds, gone)
            finally:
                made.then = self._forget  # what the thread that trains began, it alone can end
                if made.over:
                    self._forget()
            return made.tracer.saved()
        finally:
            self._one_at_a_time.release()

    def _forget(self) -> None:
        self._capture = None

    def leave(self) -> None:
        """The process ends: a profiler that still records then would take it down."""
        capture = self._capture
        if capture is not None:
            capture.leave()
        deadline = time.monotonic() + LEAVE_SECONDS
        while self.answering and time.monotonic() < deadline:  # a trace may be on its way, or half written
            time.sleep(LOOK_SECONDS)


def _wanted(asked: dict[str, Any]) -> tuple[int | None, float, bool]:
    """Steps or None, seconds, and whether Python's calls are recorded. Raises Refused for what cannot be meant."""
    unknown = [name for name in asked if name not in ("steps", "duration_s", "python")]
    steps, seconds, stacks = asked.get("steps"), asked.get("duration_s"), asked.get("python", False)
    if unknown or (steps is None) == (seconds is None) or not isinstance(stacks, bool):
        raise Refused(400, 'expected {"steps": N} or {"duration_s": SECONDS}, and "python": true or false')
    if steps is not None and (type(steps) is not int or not 1 <= steps <= MOST_STEPS):
        raise Refused(400, f"expected steps from 1 to {MOST_STEPS}")
    if seconds is not None and (type(seconds) not in (int, float) or not 0 < seconds <= MOST_SECONDS):
        raise Refused(400, f"expected seconds above 0, to {MOST_SECONDS:g}")
    return steps, WAIT_SECONDS if seconds is None else float(seconds), stacks


class _Capture:
    """One capture. It begins with a step's end and lasts `steps`, or begins at once and lasts some seconds.

    `over`: nothing is being recorded any more. `then`: called once that is so, where it was given up before.
    """

    def __init__(self, tracer: Any, steps: int | None, marks: bool):
        self.tracer, self._steps, self._marks = tracer, steps, marks
        self.over = False
        self.then: Any = None
        self._begun = self._given_up = self._last = self._stopped = self._left = False
        self._seen = 0
        self._mark: Any = None
        self._error = ""
        self._done = threading.Event()
        self._turn = threading.Lock()

    def stepped(self, number: int) -> None:
        """In the thread that trains, where nothing may be raised."""
        with self._turn:
            if self.over:
                return
            try:
                self._step(number)
            except Exception as e:
                self._fail(e)

    def _step(self, number: int) -> None:
        if self._steps is not None and not self._begun:
            if self._given_up:
                return self._end()
            self.tracer.start()
            self._begun = True
        else:
            self._close_mark()
            self._seen += self._begun
            if self._last:  # stopped by the thread that began it
                return self._end() if self._stopped else self._done.set()
            if self._given_up or self._seen == self._steps:
                self.tracer.stop()
                return self._end()
        if self._begun and self._marks:
            self._mark = self.tracer.mark(number)
            self._mark.__enter__()

    def _close_mark(self) -> None:
        mark, self._mark = self._mark, None
        if mark is not None:
            mark.__exit__(None, None, None)

    def _end(self) -> None:
        self.over = True
        self._done.set()
        if self.then is not None:
            self.then()

    def _fail(self, error: Exception) -> None:
        self._error = _said(error)
        with contextlib.suppress(Exception):
            self.tracer.stop()
        self._end()

    def leave(self) -> None:
        """The job ends, in the thread that calls, which is the one that trains."""
        with self._turn:
            self._left = True
            with contextlib.suppress(Exception):
                self._close_mark()
                if self._steps is not None and self._begun and not self.over:
                    self.tracer.stop()
            if self._steps is not None:
                self._end()
            self._done.set()

    def take(self, seconds: float, gone: Any) -> None:
        """Raises Refused where nothing comes of it."""
        if self._steps is None:
            self._for(seconds, gone)
        elif not self._until(time.monotonic() + seconds, gone):
            with self._turn:
                self._given_up = True
                if not self._begun:
                    self._end()
            hung_up = gone()
            seen = f"{self._seen} of {self._steps} steps ended" if self._begun else "no step ended"
            raise Refused(504, "who asked hung up" if hung_up else f"{seen} in {seconds:g} s; {HOW_STEPS}")
        if self._left:
            raise Refused(503, "the job ended meanwhile")
        if self._error:
            raise Refused(500, f"the profiler failed ({self._error})")

    def _for(self, seconds: float, gone: Any) -> None:
        """For so long, and to the end of the step that runs then where steps are seen."""
        try:
            self.tracer.start()
        except Exception as e:
            return self._fail(e)
        self._begun = True
        self._until(time.monotonic() + seconds, gone)
        with self._turn:
            self._last = True
        if self._seen and not self._left:  # a mark that is open is closed first, even if nobody waits any more
            self._until(time.monotonic() + LAST_STEP_SECONDS, gone if self._mark is None else lambda: False)
        try:
            self.tracer.stop()
        except Exception as e:
            self._error = _said(e)
        with self._turn:
            self._stopped = True
            self.over = self._mark is None  # else the step that runs ends it, in the thread that it belongs to
        if gone():
            raise Refused(499, "who asked hung up")

    def _until(self, deadline: float, gone: Any) -> bool:
        """Whether it was done before the deadline, and nobody hung up."""
        while not self._done.wait(LOOK_SECONDS):
            if time.monotonic() > deadline or gone():
                return self._done.is_set()
        return True


def _said(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


HOW_STEPS = "call agent.step() at the end of each step, or capture for some seconds"


def _tracer(folder: Path, at_once: bool, stacks: bool) -> Any:
    """PyTorch's profiler where the job has that loaded, else JAX's. Raises Refused where it has neither."""
    if "torch" in sys.modules:
        return _Torch(folder, at_once, stacks)
    if "jax" in sys.modules:
        return _Jax(folder, stacks)
    raise Refused(409, "neither PyTorch nor JAX is loaded in this process yet")


class _Torch:
    """For steps it is started and stopped in the thread that trains, as a job does it itself; for seconds in a thread
    of its own, and records all threads."""

    def __init__(self, folder: Path, at_once: bool, stacks: bool):
        self._folder, self._at_once, self._stacks = folder, at_once, stacks
        self._profile: Any = None

    def start(self) -> None:
        from torch.profiler import profile  # pyright: ignore[reportMissingImports]

        how: dict[str, Any] = {"record_shapes": True, "with_stack": self._stacks}
        if self._at_once:
            from torch._C._profiler import _ExperimentalConfig  # pyright: ignore[reportMissingImports]

            how["experimental_config"] = _ExperimentalConfig(profile_all_threads=True)
        made = profile(**how)
        made.start()
        self._profile = made

    def mark(self, number: int) -> Any:
        from torch.profiler import record_function  # pyright: ignore[reportMissingImports]

        return record_function(f"ProfilerStep#{number}")

    def stop(self) -> None:
        if self._profile is not None:
            self._profile.stop()

    def saved(self) -> Path:
        stem = f"{socket.gethostname()}_{os.getpid()}.{time.time_ns()}.pt.trace.json"
        plain, packed = self._folder / stem, self._folder / f"{stem}.gz"
        self._profile.export_chrome_trace(str(plain))
        with plain.open("rb") as text, gzip.open(packed, "wb", compresslevel=1) as small:
            shutil.copyfileobj(text, small, 1 << 20)
        plain.unlink()
        return packed


class _Jax:
    def __init__(self, folder: Path, stacks: bool):
        self._folder, self._stacks, self._on = folder, stacks, False

    def start(self) -> None:
        import jax  # pyright: ignore[reportMissingImports]

        how: dict[str, Any] = {}
        if hasattr(jax.profiler, "ProfileOptions"):
            how["profiler_options"] = options = jax.profiler.ProfileOptions()
            options.python_tracer_level = int(self._stacks)
        jax.profiler.start_trace(str(self._folder), **how)
        self._on = True

    def mark(self, number: int) -> Any:
        import jax  # pyright: ignore[reportMissingImports]

        return jax.profiler.StepTraceAnnotation("train", step_num=number)

    def stop(self) -> None:
        import jax  # pyright: ignore[reportMissingImports]

        on, self._on = self._on, False
        if on:
            jax.profiler.stop_trace()

    def saved(self) -> Path:
        found = sorted(self._folder.rglob("*.xplane.pb"))
        if not found:
            raise Refused(500, "JAX's profiler wrote no trace")
        return found[0]


class _Handler(BaseHTTPRequestHandler):
    timeout = REQUEST_SECONDS
    server: Any  # a _Server

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
        asking, me = self.server.agent.answering, threading.get_ident()
        asking.add(me)
        try:
            self._answer()
        finally:
            asking.discard(me)

    def _answer(self) -> None:
        try:
            asked = self._asked()
            with tempfile.TemporaryDirectory(prefix="chipledger-capture-", ignore_cleanup_errors=True) as folder:
                self._send(self.server.agent.capture(asked, self._gone, Path(folder)))
        except Refused as e:
            self._tell(e.status, str(e))
        except OSError as e:  # hung up, or no room for the trace
            with contextlib.suppress(OSError):
                self._tell(500, e.strerror or "the trace could not be written")
        except Exception as e:
            with contextlib.suppress(OSError):
                self._tell(500, _said(e))

    def _asked(self) -> dict[str, Any]:
        """What is asked, by who may. Raises Refused."""
        said = self.headers.get("Authorization", "").encode("utf-8", "replace")
        if not hmac.compare_digest(said, b"Bearer " + self.server.token.encode()):
            raise Refused(401, "the token is another")
        length = self.headers.get("Content-Length", "")
        if self.path != "/capture" or not (length.isascii() and length.isdigit()) or int(length) > REQUEST_BYTES:
            raise Refused(404, "expected POST /capture with a small JSON object")
        try:
            asked = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            asked = None
        if not isinstance(asked, dict):
            raise Refused(400, "expected a JSON object")
        return asked

    def _gone(self) -> bool:
        try:
            return bool(select.select([self.connection], [], [], 0)[0]) and not self.connection.recv(1, socket.MSG_PEEK)
        except OSError:
            return True

    def _send(self, trace: Path) -> None:
        size = trace.stat().st_size
        if size > MOST_BYTES:
            raise Refused(413, f"the trace has {size:,} bytes, more than {MOST_BYTES:,}; take fewer steps")
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(size))
        self.send_header(NAME, trace.name)
        self.end_headers()
        with trace.open("rb") as f:
            shutil.copyfileobj(f, self.wfile, 1 << 20)

    def _tell(self, status: int, why: str) -> None:
        body = json.dumps({"error": why}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that http.server gives
        """The job's output is its own."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, listen: tuple[str, int], token: str, agent: Agent):
        self.address_family = socket.AF_INET6 if ":" in listen[0] else socket.AF_INET
        super().__init__(listen, _Handler)
        self.token, self.agent = token, agent
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)

    def service_actions(self) -> None:
        self.agent.watch()

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who hung up is no news to the job."""


def serve(listen: str | None = None, token: str | None = None, marks: bool = True) -> Agent:
    """Answer at `HOST:PORT` (else $CHIPLEDGER_CAPTURE) in a thread; the agent whose `step` the job may call.

    `marks`: steps are marked in the trace; not where a job marks its own.
    """
    agent = Agent(marks)
    listen, token = listen or os.environ.get(LISTEN, ""), token or os.environ.get(TOKEN, "")
    if not listen:
        return agent
    try:
        if len(token) < LEAST_TOKEN:
            raise ValueError(f"${TOKEN} has fewer than {LEAST_TOKEN} characters")
        host, _, port = listen.rpartition(":")
        rank = os.environ.get("LOCAL_RANK", "0")
        server = _Server((host.strip("[]"), int(port) + int(rank)), token, agent)
    except (OSError, ValueError, OverflowError) as e:
        print(f"chipledger: nothing can be captured from this process ({e})", file=sys.stderr, flush=True)
        return agent
    agent.port = server.server_address[1]
    atexit.register(agent.leave)
    os.register_at_fork(after_in_child=server.socket.close)  # a worker of a data loader must not hold the port
    threading.Thread(target=server.serve_forever, name="chipledger-capture", daemon=True).start()
    return agent


def main(arguments: list[str]) -> None:
    """Run a script or `-m MODULE` as Python does, with an agent beside it."""
    if not arguments or arguments == ["-m"]:
        sys.exit("usage: chipledger_agent.py (-m MODULE | FILE) [ARGUMENTS], with $CHIPLEDGER_CAPTURE=HOST:PORT")
    serve()
    if arguments[0] == "-m":
        sys.argv, sys.path[0] = arguments[1:], os.getcwd()
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    sys.argv, sys.path[0] = arguments, str(Path(arguments[0]).resolve().parent)
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
