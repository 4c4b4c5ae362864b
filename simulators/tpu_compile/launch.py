"""Runs the worker with limits on time and memory, and keeps what it makes by content. No JAX here."""

import contextlib
import importlib.metadata
import json
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from errors import ChipledgerError, InputError
from simulators.tpu_compile.request import CompileRequest, content_key

PACKAGES = ("jax", "jaxlib", "libtpu")
MISSING = "the TPU compiler is not installed: pip install 'chipledger[tpu]'"
SUFFIX = ".compiled.json"
DEFAULT_SECONDS = 600.0
DEFAULT_MEMORY_BYTES = 16 << 30
LOOK_SECONDS = 0.2
PROJECT = Path(__file__).parents[2]
FLAGS = ("LIBTPU_INIT_ARGS", "XLA_FLAGS")
"""By which the environment changes what the compiler makes of a program."""
# the compiler looks for a TPU and its metadata server unless it is told that there is none
ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v6e-4",
    "JAX_ENABLE_COMPILATION_CACHE": "0",
}

Progress = Callable[[float, str], None]


class Cancelled(ChipledgerError):
    """The compilation was cancelled; nothing was kept."""


@dataclass(frozen=True)
class Limits:
    """Seconds of wall clock, and bytes of memory of the compiler's processes together."""

    seconds: float = DEFAULT_SECONDS
    memory_bytes: int = DEFAULT_MEMORY_BYTES


def versions() -> dict[str, str]:
    """Versions of JAX and the compiler. Raises InputError where the `tpu` extra is not installed."""
    try:
        return {name: importlib.metadata.version(name) for name in PACKAGES}
    except importlib.metadata.PackageNotFoundError as e:
        raise InputError(MISSING) from e


def flags() -> dict[str, str]:
    """Flags of the compiler that the environment sets, by the variable that holds them."""
    return {name: " ".join(text.split()) for name in FLAGS if (text := os.environ.get(name, "")).strip()}


def compiled_file(
    request: CompileRequest,
    cache: Path,
    limits: Limits | None = None,
    progress: Progress | None = None,
    cancel: Callable[[], bool] | None = None,
) -> Path:
    """The file `*.compiled.json` that answers `request`: from `cache`, or made now and kept there.

    A user's function is always compiled anew, since it may import anything. `progress(part, doing)` is told between 0
    and 1; where `cancel()` turns true it ends with Cancelled. Raises InputError, one sentence, where the extra is
    missing, a limit is met, the compiler rejects the topology, or the user's function raises. Nothing is kept then.
    """
    name = re.sub(r"[^A-Za-z0-9.=,x-]+", "-", request.title)[:80].strip("-")
    kept = cache / f"{name}-{content_key(request, versions() | flags())[:16]}{SUFFIX}"
    if request.function is None and kept.is_file():
        return kept
    try:
        cache.mkdir(parents=True, exist_ok=True)
        _Worker(request, kept, limits or Limits(), progress, cancel).run()
    except OSError as e:
        raise InputError(f"cannot be written ({e.strerror})", where=str(cache)) from e
    return kept


class _Worker:
    def __init__(
        self,
        request: CompileRequest,
        out: Path,
        limits: Limits,
        progress: Progress | None,
        cancel: Callable[[], bool] | None,
    ):
        self.request, self.out, self.limits = request, out, limits
        self.progress = progress or (lambda part, doing: None)
        self.cancel = cancel or (lambda: False)
        self.error: str | None = None
        self.done = False

    def run(self) -> None:
        """Raises InputError or Cancelled, with every process of the worker ended, or returns with the file written."""
        paths = os.pathsep.join([str(PROJECT), *filter(None, [os.environ.get("PYTHONPATH")])])
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(
                [sys.executable, "-m", "simulators.tpu_compile.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                start_new_session=True,
                env={**os.environ, **ENVIRONMENT, "PYTHONPATH": paths},
                cwd=self.out.parent,
            )
            try:
                with contextlib.suppress(BrokenPipeError):
                    assert process.stdin is not None, "it was asked for as a pipe"
                    process.stdin.write(json.dumps({"request": self.request.to_dict(), "out": str(self.out)}) + "\n")
                    process.stdin.flush()
                self._watch(process)
            finally:
                _end(process)
            if self.error is not None:
                raise InputError(self.error)
            if not self.done or not self.out.is_file():
                said.seek(0)
                raise InputError(_why(process.returncode, said.read().decode("utf-8", "replace")))

    def _watch(self, process: subprocess.Popen) -> None:
        lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=_read, args=(process, lines), daemon=True).start()
        began, looked = time.monotonic(), 0.0
        while True:
            try:
                line = lines.get(timeout=LOOK_SECONDS)
                if line is None:
                    process.wait(timeout=5)
                    return
                self._heard(line)
            except queue.Empty:
                pass
            except subprocess.TimeoutExpired:
                return
            if self.cancel():
                raise Cancelled("cancelled; nothing was stored")
            now = time.monotonic()
            if now - began > self.limits.seconds:
                raise InputError(
                    f"the compilation took longer than {self.limits.seconds:g} s and was ended",
                    advice="Give it more with --timeout, or compile a smaller model, mesh or sequence.",
                )
            if now - looked > LOOK_SECONDS:
                looked = now
                if (used := group_memory_bytes(process.pid)) > self.limits.memory_bytes:
                    raise InputError(
                        f"the compiler took {used / 1e9:.1f} GB of memory and was ended",
                        expected=f"at most {self.limits.memory_bytes / 1e9:.1f} GB",
                        advice="Give it more with --memory-gb, or compile a smaller model or mesh.",
                    )

    def _heard(self, line: str) -> None:
        with contextlib.suppress(ValueError, TypeError):
            told = json.loads(line)
            if "error" in told:
                self.error = str(told["error"])
            elif told.get("done"):
                self.done = True
            elif "stage" in told:
                self.progress(float(told["fraction"]), f"{told['stage']}, {told['elapsed_s']:.0f} s")


def group_memory_bytes(group: int) -> int:
    """Resident bytes of all processes of a process group, pages they share counted for each; 0 where not known.

    Address space is no measure: the compiler reserves far more than it uses.
    """
    page, total = os.sysconf("SC_PAGE_SIZE"), 0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            after_name = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(after_name[2]) == group:
                total += int(after_name[21]) * page
    return total


def _read(process: subprocess.Popen, lines: queue.Queue) -> None:
    assert process.stdout is not None, "it was asked for as a pipe"
    for line in process.stdout:
        lines.put(line)
    lines.put(None)


def _end(process: subprocess.Popen) -> None:
    """End every process of the worker's group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if stream is not None:
                stream.close()


def _why(code: int, said: str) -> str:
    """One sentence for a worker that ended without an answer: a failed check of the compiler, memory, a defect."""
    fatal = [line for line in said.splitlines() if line.startswith("F0") or "Check failed" in line]
    if fatal:
        reason = fatal[0].rpartition("] ")[2]
        return f"the TPU compiler gave up: {' '.join(reason.split())[:400]}"
    if code == -signal.SIGKILL:
        return "the system ended the compiler, most likely for lack of memory"
    last = next((line for line in reversed(said.splitlines()) if line.strip()), f"exit code {code}")
    return f"the compiler's process ended without an answer ({' '.join(last.split())[:300]})"
