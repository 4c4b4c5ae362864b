"""A real server as people start it: `chipledger serve` or `demo` in a process of its own, on a free port."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).parents[2]
left: list[int] | None = None  # ports of servers that ended, where the next one takes them over


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def _next_port() -> int:
    """A free one; of those that were left, where they are kept and nobody took them meanwhile."""
    while left:
        port = left.pop()
        with contextlib.suppress(OSError), socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as a server binds it
            s.bind(("127.0.0.1", port))
            return port
    return free_port()


def environment(**more: str) -> dict[str, str]:
    """The environment of a child: this project importable, nothing of the caller's own settings."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CHIPLEDGER", "STREAMLIT"))}
    return {**kept, "PYTHONPATH": str(PROJECT), **more}


def command(*arguments: object, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess:
    """`chipledger ARGUMENTS` to its end."""
    return subprocess.run(
        [sys.executable, "-m", "app.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(**env),
        cwd=cwd,
    )


@contextlib.contextmanager
def serving(
    store: Path, *arguments: str, verb: str = "serve", cwd: Path | None = None, port: int = 0, **env: str
) -> Iterator[str]:
    """The address of a server that answers; it is ended by its process id."""
    chosen, port = port, port or _next_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "app.cli", verb, "--store", str(store), "--port", str(port), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(**env),
        cwd=cwd,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 300  # of a machine on which much else runs
        while True:
            if process.poll() is not None:
                raise AssertionError(f"the server ended: {process.stdout.read()}")
            with contextlib.suppress(OSError):
                if get(f"{address}/healthz")[0] == 200:
                    break
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.2)
        yield address
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if left is not None and not chosen:
            left.append(port)


def request(method: str, url: str, body: object = None, headers: dict | None = None) -> tuple[int, dict]:
    """(status, JSON) of one request; `body` may be bytes or what becomes JSON."""
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    asked = urllib.request.Request(url, data=data, method=method, headers=headers or {})
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as e:
        text = e.read()
        try:
            return e.code, json.loads(text)
        except ValueError:
            return e.code, {"text": text.decode("utf-8", "replace")}


def get(url: str) -> tuple[int, dict]:
    return request("GET", url)
