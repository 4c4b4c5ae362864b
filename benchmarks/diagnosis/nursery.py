"""Where the processes of the jobs are born: one process that has imported what they need, and forks them.

Importing JAX and Orbax takes two seconds of a core, for every process of every run; a fork takes milliseconds. What is
forked has started no backend, so each is a process of its own like any other. `python -m benchmarks.diagnosis.nursery`
reads orders, a JSON object a line, `{"id", "module", "arguments", "cwd", "environment", "out", "err"}`, calls
`main(arguments)` of that module in a new process, and writes `{"id", "pid"}` and, when it ends, `{"id", "status"}`.

Nothing is left behind: a child's standard input is a pipe that only the nursery writes to, and every child ends when it
closes; the nursery ends, and so do they, when its own standard input closes.
"""

import contextlib
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LOOK_S = 0.01
BIRTH_S = 180
"""How long a first child may take to be born: JAX and Orbax are imported before, on a busy new machine in a minute."""
ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "1",
}
"""What every child finds in its environment, besides what it is started with."""


class Child:
    """A process that the nursery forked; `poll` and `wait` as of a subprocess, of which it is none."""

    def __init__(self) -> None:
        self.pid: int | None = None
        self.status: int | None = None
        self.born, self.gone = threading.Event(), threading.Event()

    def poll(self) -> int | None:
        return self.status

    def kill(self, signal_number: int = signal.SIGKILL) -> None:
        self.wait_born()
        if self.status is None and self.pid is not None:
            with contextlib.suppress(ProcessLookupError):  # it ended; that the nursery says so is on its way
                os.kill(self.pid, signal_number)

    def wait_born(self) -> None:
        """Returns when it lives, or when nothing will be born any more."""
        self.born.wait(BIRTH_S)

    def wait(self, timeout_s: float = 60) -> int | None:
        self.gone.wait(timeout_s)
        return self.status


class Nursery:
    """Starts the nursery, and children in it. A context: all of them are gone when it is left."""

    def __init__(self) -> None:
        environment = os.environ | ENVIRONMENT | {"PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "benchmarks.diagnosis.nursery"]
        self._process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._children: dict[int, Child] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> "Nursery":
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(10)

    def start(self, module: str, arguments: list[Any], *, cwd: Path, stem: Path, **environment: str) -> Child:
        """`main(arguments)` of a module, in a process of its own; its output goes to `<stem>.out` and `<stem>.err`."""
        assert self._process.stdin
        child, number = Child(), len(self._children)
        self._children[number] = child
        order = {
            "id": number,
            "module": module,
            "arguments": arguments,
            "cwd": str(cwd),
            "environment": environment,
            "out": f"{stem}.out",
            "err": f"{stem}.err",
        }
        self._process.stdin.write((json.dumps(order) + "\n").encode())
        self._process.stdin.flush()
        return child

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            told = json.loads(line)
            child = self._children[told["id"]]
            if "pid" in told:
                child.pid = told["pid"]
                child.born.set()
            else:
                child.status = told["status"]
                child.gone.set()
        for child in self._children.values():  # the nursery is gone, and with it all of them
            if child.status is None:
                child.status = -signal.SIGKILL
            child.born.set()
            child.gone.set()


def _be_child(order: dict[str, Any], standard_input: int, others: list[int]) -> None:
    """What a fork does: takes its place, runs, and never returns."""
    status = 1
    try:
        for fd in others:
            os.close(fd)
        os.dup2(standard_input, 0)
        for number, name in ((1, "out"), (2, "err")):
            fd = os.open(order[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.dup2(fd, number)
            os.close(fd)
        os.environ.update(order["environment"])
        os.chdir(order["cwd"])
        importlib.import_module(order["module"]).main(order["arguments"])
        status = 0
    except SystemExit as e:
        status = e.code if isinstance(e.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main() -> None:
    for module in ("benchmarks.diagnosis.training.worker", "benchmarks.diagnosis.serving.worker"):
        importlib.import_module(module)
    answers, pending = os.dup(1), b""
    os.dup2(2, 1)
    pipes: dict[int, tuple[int, int]] = {}  # pid: (id, the end of its standard input that is written to)

    def tell(**what: int) -> None:
        os.write(answers, (json.dumps(what) + "\n").encode())

    while True:
        ready, _, _ = select.select([0], [], [], LOOK_S)
        if ready:
            data = os.read(0, 1 << 16)
            if not data:
                break
            pending += data
            *lines, pending = pending.split(b"\n")
            for line in lines:
                order = json.loads(line)
                reading, writing = os.pipe()
                if not (pid := os.fork()):
                    _be_child(order, reading, [writing, answers, *(end for _, end in pipes.values())])
                os.close(reading)
                pipes[pid] = (order["id"], writing)
                tell(id=order["id"], pid=pid)
        for pid in [*pipes]:
            gone, status = os.waitpid(pid, os.WNOHANG)
            if gone:
                number, writing = pipes.pop(pid)
                os.close(writing)
                tell(id=number, status=os.waitstatus_to_exitcode(status))
    for pid in pipes:
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 5
    for pid in pipes:
        while time.monotonic() < deadline and not os.waitpid(pid, os.WNOHANG)[0]:
            time.sleep(LOOK_S)


if __name__ == "__main__":
    main()
