"""A run read by the workers of a real Dask cluster is the one that processes of this machine write, byte for byte."""

import importlib.util
import os
import re
import signal
import socket
import threading
import time

import pytest

from benchmarks.dask_cluster import DaskCluster
from collectors.ingest import ingest
from collectors.ingesting.gather import Cancelled
from collectors.ingesting.parts import spread
from errors import InputError
from runs.parts import in_parts
from runs.spread.choosing import engine_of
from runs.spread.cluster import Cluster
from runs.store import Store
from tests.collectors.ingesting import nothing_stored
from tests.collectors.test_ahead import write

HOSTS = 8
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None and not os.environ.get("CI"),
    reason="Dask is not installed: pip install 'chipledger[cluster]'",
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with DaskCluster(tmp_path_factory.mktemp("cluster"), 2) as started:
        yield started


@pytest.fixture
def hosts(folder, monkeypatch):
    """Traces of eight hosts, a log, one trace cut short and one that is empty; each a task, no table too small."""
    monkeypatch.setattr(spread, "GATHERED_BYTES", 0)
    monkeypatch.setattr(spread, "TASK_FILES", 1)
    write(folder, ranks=HOSTS)
    (folder / "broken.pt.trace.json").write_bytes((folder / "rank0.pt.trace.json").read_bytes()[:-700])
    (folder / "empty.pt.trace.json").write_bytes(b"")
    return folder


def kept(folder, where, address, **asked):
    store = Store(where)
    done = ingest([folder], store, engine=engine_of(address), **asked)
    return done, store.get(done.run_id), store


def content(run):
    files = (p for p in sorted(run.folder.rglob("*")) if p.is_file() and p.name != "run.json")
    return {p.relative_to(run.folder): p.read_bytes() for p in files}


def test_every_file_of_the_run_is_the_same(tmp_path, hosts, cluster):
    told = []
    seen = []
    for name, address in (("here", "local"), ("there", cluster.address)):
        progress = lambda done, total, what: seen.append((done, total))  # noqa: E731
        done, run, store = kept(hosts, tmp_path / name, address, progress=progress)
        told.append((done, run.manifest.facts, run.manifest.files, content(run)))
        assert list((store.root / "partial").iterdir()) == []
    assert told[0] == told[1] and in_parts(told[0][2])
    assert [w for w in told[0][0].warnings if "broken" in w] and told[0][0].tables["captures"] >= HOSTS
    assert seen[-1][0] == seen[-1][1] and all(0 <= done <= total for done, total in seen)


def test_workers_that_are_killed_cost_their_tasks_alone(tmp_path, hosts, cluster):
    before = content(kept(hosts, tmp_path / "here", "local")[1])
    stop, killed = threading.Event(), []

    def kill():
        while not stop.is_set():
            for pid in cluster.workers()[:1]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
            stop.wait(1.5)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        after = content(kept(hosts, tmp_path / "there", cluster.address)[1])
    finally:
        stop.set()
        thread.join()
    assert killed and before == after


def test_a_cancelled_ingest_leaves_nothing_and_the_cluster_goes_on(tmp_path, hosts, store, cluster):
    asked = []

    def cancel():
        asked.append(1)
        return len(asked) > 30

    with pytest.raises(Cancelled):
        ingest([hosts], store, engine=engine_of(cluster.address), cancel=cancel)
    assert nothing_stored(store)
    assert kept(hosts, tmp_path / "again", cluster.address)[0].tables["captures"] >= HOSTS


def test_a_worker_of_another_version_is_refused_in_one_sentence(tmp_path, hosts, store, monkeypatch, cluster):
    monkeypatch.setattr("collectors.ingesting.parts.work.stamp", lambda: "readers 0123456789abcdef")
    with pytest.raises(InputError, match="a worker is of another version") as refused:
        ingest([hosts], store, engine=engine_of(cluster.address))
    assert re.search(r"tcp://127.0.0.1:\d+: a worker .*this is readers 0123456789abcdef", str(refused.value))
    assert "Start all workers from the same installation" in str(refused.value)
    assert nothing_stored(store)


def test_where_nobody_listens_it_is_said_at_once():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    began = time.monotonic()
    with pytest.raises(InputError, match=f"tcp://127.0.0.1:{port}: no Dask scheduler answers.*dask scheduler"):
        Cluster(f"tcp://127.0.0.1:{port}")
    assert time.monotonic() - began < 5


def test_what_listens_and_is_no_scheduler_is_told(store, hosts):
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(InputError, match="no Dask scheduler answers"):
            ingest([hosts], store, engine=engine_of(address))
    assert nothing_stored(store)


@pytest.mark.parametrize(
    "address", ["", "host:8786", "tcp://", "tcp://h:0", "tcp://h:99999", "http://h:1", "x" * 10_000]
)
def test_what_is_no_address_is_refused(address):
    with pytest.raises(InputError, match="no address of a Dask scheduler|expected tcp://HOST:PORT"):
        engine_of(address)


def test_without_workers_it_is_said(tmp_path, hosts, store):
    with DaskCluster(tmp_path / "cluster", 0) as empty, pytest.raises(InputError, match="the cluster has no workers"):
        ingest([hosts], store, engine=engine_of(empty.address))
    assert nothing_stored(store)
