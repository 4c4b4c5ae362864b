"""Several servers of one store and one registry, and a small proxy in front of them."""

import contextlib
import os
import selectors
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.app.serving import PROJECT, environment, free_port, get

START_S = 120.0


@dataclass(frozen=True)
class Replica:
    address: str
    process: "subprocess.Popen[bytes]"

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def replicas(store: Path, count: int, *flags: str, **env: str) -> Iterator[list[Replica]]:
    """So many servers, started at the same moment. They are ended by their process ids."""
    begun: list[Replica] = []
    log = (store.parent / "replicas.log").open("ab")
    try:
        for _ in range(count):
            port = free_port()
            command = [sys.executable, "-m", "app.cli", "serve", "--store", str(store), "--port", str(port), *flags]
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment(**env), cwd=PROJECT)
            begun.append(Replica(f"http://127.0.0.1:{port}", process))
        for one in begun:
            _until_it_answers(one, store.parent / "replicas.log")
        yield begun
    finally:
        for one in begun:
            one.process.terminate()
        for one in begun:
            with contextlib.suppress(subprocess.TimeoutExpired):
                one.process.wait(20)
            one.kill()
        log.close()


def _until_it_answers(one: Replica, log: Path) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until and one.process.poll() is None:
        with contextlib.suppress(OSError):
            if get(f"{one.address}/healthz")[0] == 200:
                return
        time.sleep(0.1)
    raise AssertionError(log.read_text()[-3000:])


class Proxy:
    """Hands each connection on to the first of some ports that takes it: whoever comes stays with one server as long
    as it lives."""

    def __init__(self, ports: Sequence[int]):
        self._ports, self._listening = list(ports), socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.took: list[int] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                came, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(came,), daemon=True).start()

    def _serve(self, came: socket.socket) -> None:
        with came:
            for port in self._ports:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as behind:
                    behind.settimeout(None)
                    self.took.append(port)
                    _hand_on(came, behind)
                    return


def _hand_on(one: socket.socket, other: socket.socket) -> None:
    to = {one: other, other: one}
    with selectors.DefaultSelector() as look, contextlib.suppress(OSError):
        for end in to:
            look.register(end, selectors.EVENT_READ)
        while True:
            for key, _ in look.select():
                data = key.fileobj.recv(1 << 16)
                if not data:
                    return
                to[key.fileobj].sendall(data)


def address_file(folder: Path, url: str) -> str:
    """A file that holds the address of a registry, which only its owner reads."""
    path = folder / "registry.address"
    path.write_text(url)
    os.chmod(path, 0o600)
    return str(path)
