"""A real PostgreSQL for tests: a cluster of Debian's package in a temporary folder, on a free port of loopback,
started and ended here, by its process id. Of each session of tests there is one; each registry has a schema in it."""

import glob
import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from app.registry_place import VARIABLE
from runs.postgres.server import Server, let_go, server

PASSWORD = "a secret/with @ letters"  # noqa: S105 - of a server that lives as long as the tests
QUOTED = "a%20secret%2Fwith%20%40%20letters"
PROGRAMS = "/usr/lib/postgresql/*/bin"
FAST = (
    "fsync=off",
    "full_page_writes=off",
    "autovacuum=off",
    "shared_buffers=16MB",
    "jit=off",
)
LACKS = "no PostgreSQL here: install the system package postgresql, and psycopg"
START_S = 30.0
_numbers = itertools.count()


@dataclass
class Cluster:
    """A server that runs; `stop` and `start` are for tests of one that is gone for a while."""

    folder: Path
    programs: Path
    port: int
    process: "subprocess.Popen[bytes] | None" = field(default=None, repr=False)

    def start(self) -> None:
        told = [
            f"port={self.port}",
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "max_connections=80",
            *FAST,
        ]
        command = [str(self.programs / "postgres"), "-D", str(self.folder / "data")]
        log = (self.folder / "log").open("ab")
        said_before = log.tell()
        command += [word for setting in told for word in ("-c", setting)]
        self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, **_unprivileged())
        log.close()
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            if b"ready to accept connections" in (self.folder / "log").read_bytes()[said_before:]:
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError((self.folder / "log").read_text()[-2000:])

    def stop(self, how: int = signal.SIGINT) -> None:
        """SIGINT: connections are ended; SIGQUIT: as after a crash."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(timeout=START_S)

    def url(self, schema: str = "", *, user: str = "tester", password: str = QUOTED, database: str = "postgres") -> str:
        more = f"?options=-csearch_path%3D{schema}" if schema else ""
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}{more}"

    def sql(self, *statements: str) -> list[tuple]:
        """What the last of them finds, as the one who may do all."""
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as db:
            found = [db.execute(text) for text in statements][-1]
            return found.fetchall() if found.description else []

    def connections(self) -> int:
        """How many of ours there are. What was closed may be told for a moment more."""
        return self.sql("select count(*) from pg_stat_activity where application_name = 'chipledger'")[0][0]

    def schema(self) -> str:
        """A new and empty one."""
        name = f"registry_{next(_numbers)}"
        self.sql(f"create schema {name}")
        return name

    def registry(self) -> Server:
        """A registry that holds nothing yet."""
        return server(self.url(self.schema()))


def _unprivileged() -> dict:
    """PostgreSQL does not run as root."""
    return {"user": "nobody", "group": "nogroup", "extra_groups": ()} if os.geteuid() == 0 else {}


def begun() -> Cluster | None:
    """A new cluster that runs; None where there is nothing to run."""
    found = sorted(glob.glob(f"{PROGRAMS}/postgres"), key=lambda p: int(Path(p).parents[1].name))
    path = shutil.which("postgres") or (found[-1] if found else None)
    try:
        import psycopg  # noqa: F401
    except ImportError:
        path = None
    if path is None:
        return None
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="chipledger-postgres-", dir=memory))
    cluster = Cluster(folder, Path(path).resolve().parent, free_port())
    (folder / "secret").write_text(PASSWORD)
    if os.geteuid() == 0:
        for place in (folder, folder / "secret"):
            shutil.chown(place, "nobody", "nogroup")
    init = [str(cluster.programs / "initdb"), "-D", str(folder / "data"), "-U", "tester", "-A", "scram-sha-256"]
    init += ["--pwfile", str(folder / "secret"), "--no-sync", "-E", "UTF8", "--locale", "C.UTF-8"]
    done = subprocess.run(init, capture_output=True, text=True, **_unprivileged())
    assert done.returncode == 0, done.stderr
    cluster.start()
    return cluster


def ended(cluster: Cluster) -> None:
    cluster.stop()
    shutil.rmtree(cluster.folder, ignore_errors=True)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as held:
        return held.getsockname()[1]


@pytest.fixture(scope="session")
def postgres():
    """A server that runs. Where there is none, CI fails and others skip."""
    cluster = begun()
    if cluster is None:
        if os.environ.get("CI") == "true":
            pytest.fail(LACKS)
        pytest.skip(LACKS)
    yield cluster
    until = time.monotonic() + START_S
    while (left := cluster.connections()) and time.monotonic() < until:
        time.sleep(0.05)
    ended(cluster)
    assert not left, f"{left} connections were left open: of all tests together there would be too many"


@pytest.fixture(autouse=True)
def _connections_end_with_the_test():
    """Each test has a registry of its own: what it keeps open nobody takes again."""
    yield
    let_go()


@pytest.fixture(params=["sqlite", "postgres"])
def either_registry(request, monkeypatch):
    """Stores that are opened have their registry in a file, or on a server."""
    if request.param == "sqlite":
        yield
        return
    cluster = request.getfixturevalue("postgres")
    url = cluster.url(cluster.schema())
    monkeypatch.setenv(VARIABLE, url)
    yield


@pytest.fixture(params=["sqlite", "postgres"])
def registry_at(request, tmp_path):
    """Where a registry is: a file, and a server; a test that asks for it is tried on both."""
    if request.param == "sqlite":
        yield tmp_path / "registry.db"
        return
    yield request.getfixturevalue("postgres").registry()
