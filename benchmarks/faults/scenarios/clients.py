"""Clients that are slow, or many, and a server that may open no more files."""

import contextlib
import os
import resource
import socket
import threading
import time
from pathlib import Path

from benchmarks.faults.kills.servers import Server, ask
from benchmarks.faults.scenarios.places import a_run, few_files, serving, upload
from benchmarks.faults.scenarios.told import Told


def slow_clients(told: Told, folder: Path) -> None:
    """300 clients that send their headers, or a body, a byte at a time, or do not read what they asked for."""
    with serving(folder / "store") as server:
        run = a_run(server.port, 1)
        _, told_upload = ask(server.port, "POST", "/api/uploads")
        where, before = f"/upload/{told_upload['upload_id']}", _resident(server.pid)
        sockets: list[socket.socket] = []
        for n in range(300):
            s = socket.create_connection(("127.0.0.1", server.port))
            sockets.append(s)
            host = f"Host: localhost:{server.port}\r\n"
            if n % 3 == 0:
                s.sendall(f"GET /api/runs HTTP/1.1\r\n{host}X-Slow: ".encode())
            elif n % 3 == 1:
                s.sendall(f"PUT {where}/s{n}.log HTTP/1.1\r\n{host}Content-Length: 100000000\r\n\r\n".encode())
            else:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
                s.sendall((f"GET /api/openapi HTTP/1.1\r\n{host}\r\n" * 3).encode())
        took = []
        for _ in range(40):
            for s in sockets[:200]:
                with contextlib.suppress(OSError):
                    s.send(b"x")
            at = time.monotonic()
            told.done(ask(server.port, "GET", f"/api/runs/{run}"), "a run meanwhile")
            took.append(time.monotonic() - at)
        grown = (_resident(server.pid) - before) / (1 << 20)
        middle = sorted(took)[len(took) // 2]
        told.say(f"others' answers: median {middle * 1e3:.0f} ms, longest {max(took) * 1e3:.0f} ms")
        told.say(f"memory grew by {grown:.0f} MiB")
        told.must(max(took) < 5 and grown < 300, f"longest {max(took):.1f} s, {grown:.0f} MiB")
        for s in sockets:
            s.close()
        time.sleep(2)
        told.must(not list((folder / "store" / "uploads").glob("*/*.part")), "halves of uploads stay")
        told.served(server)


def idle_connections(told: Told, folder: Path) -> None:
    """3,000 connections on which nothing is said."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most[1], most[1]))
    try:
        with serving(folder / "store", lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, most[1]))) as server:
            run = a_run(server.port, 1)
            _many_idle(told, server, run, 3000)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, most)


def descriptors_run_out(told: Told, folder: Path) -> None:
    """A server that may open 256 files, and 400 connections."""
    with serving(folder / "store", few_files(256)) as server:
        run = a_run(server.port, 1)
        _many_idle(told, server, run, 400, may_wait=True)


def _many_idle(told: Told, server: Server, run: str, count: int, may_wait: bool = False) -> None:
    sockets = []
    for _ in range(count):
        s = socket.socket()
        s.settimeout(5)
        with contextlib.suppress(OSError):
            s.connect(("127.0.0.1", server.port))
        sockets.append(s)
    time.sleep(1)
    open_files = len(os.listdir(f"/proc/{server.pid}/fd"))
    at = time.monotonic()
    answered = _asked_within(server.port, f"/api/runs/{run}", 20)
    took = time.monotonic() - at
    told.say(f"{count:,} connections, {open_files:,} files open in the server")
    told.say(f"a run was {'answered' if answered else 'not answered'} in {took:.1f} s")
    told.must(answered or may_wait, "nobody is answered")
    for s in sockets:
        s.close()
    at = time.monotonic()
    while not _asked_within(server.port, f"/api/runs/{run}/show/ledger", 5) and time.monotonic() - at < 60:
        time.sleep(0.5)
    told.say(f"answered again {time.monotonic() - at:.1f} s after they were gone")
    told.done(ask(server.port, "PATCH", f"/api/runs/{run}", {"name": "after"}), "a name after that")
    told.done(upload(server.port, 99), "an upload after that")


def _asked_within(port: int, path: str, seconds: float) -> bool:
    found: list[bool] = []

    def asking() -> None:
        with contextlib.suppress(OSError):
            found.append(ask(port, "GET", path)[0] < 300)

    thread = threading.Thread(target=asking, daemon=True)
    thread.start()
    thread.join(seconds)
    return found == [True]


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
