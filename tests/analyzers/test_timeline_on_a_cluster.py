"""A timeline that is made by the workers of a real Dask cluster is the one that one process makes, byte for byte."""

import importlib.util
import logging
import os
import signal
import threading
from functools import partial

import pytest

from analyzers import timeline as made
from analyzers.timeline.progress import PLACING, heard_by
from analyzers.timeline.spread import asking, work
from benchmarks.dask_cluster import DaskCluster
from runs.spread.cluster import AHEAD, Cluster, _Course
from tests.analyzers.test_timeline_progress import left
from tests.analyzers.test_timeline_spread import asked, run, small, written  # noqa: F401 - fixtures

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("distributed") is None and not os.environ.get("CI"),
        reason="Dask is not installed: pip install 'chipledger[cluster]'",
    ),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with DaskCluster(tmp_path_factory.mktemp("cluster"), 2) as started:
        yield started


@pytest.fixture(autouse=True)
def fewer(small, monkeypatch):  # noqa: F811
    """Tasks than where they cost nothing to hand on."""
    monkeypatch.setattr(asking, "LEAST_PLACED", 80)
    monkeypatch.setattr(asking, "PLACED", 80)


def test_it_is_that_of_one_process_to_the_last_byte(run, cluster):  # noqa: F811
    assert written(run, Cluster(cluster.address)) == written(run)


def test_a_worker_that_is_killed_costs_its_task_alone(run, cluster, monkeypatch):  # noqa: F811
    submit, submitted = _Course.submit, list[str]()
    monkeypatch.setattr(_Course, "submit", lambda self, n, task: (submitted.append(task.key), submit(self, n, task)))
    ended, killed = list[str](), list[int]()

    class Killing(Cluster):
        """Kills a worker once a task of each kind is done."""

        def map(self, work, tasks, check, report):
            for outcome in super().map(work, tasks, check, report):
                ended.append(outcome.task.key)
                if work.function not in done:
                    done.add(work.function)
                    victim = cluster.workers()[0]
                    os.kill(victim, signal.SIGKILL)
                    killed.append(victim)
                yield outcome

    done = set[str]()
    assert written(run, Killing(cluster.address)) == written(run)
    assert len(killed) == 3 and len(set(ended)) == len(ended)
    assert set(submitted) == set(ended) and len(submitted) <= len(ended) + AHEAD * len(killed)


def test_one_that_is_ended_leaves_nothing_and_the_cluster_goes_on(run, asked, cluster, monkeypatch):  # noqa: F811
    class Ended(Exception):
        pass

    def listen(now, done, whole):
        if now == PLACING and done:
            raise Ended

    monkeypatch.setenv("CHIPLEDGER_CLUSTER", cluster.address)
    with heard_by(listen), pytest.raises(Ended):
        asked()
    assert left(run) == []
    monkeypatch.setattr(made, "_by_this_process", lambda *_: pytest.fail("it was made here"))
    monkeypatch.setattr(made, "processors", lambda: 1)
    assert asked().events and threading.active_count() < 50


def test_workers_of_another_version_are_not_asked(run, cluster, monkeypatch, caplog):  # noqa: F811
    monkeypatch.setattr(work, "stamp", lambda: "analyzers 0123456789abcdef")
    begun = partial(Cluster, cluster.address)
    with caplog.at_level(logging.WARNING):
        folder = run.folder.parent.parent / "partial" / "x"
        assert not made._by_workers(run.tables, run.manifest.facts, "key", folder, begun)
    assert "a worker is of another version" in caplog.text and list(folder.parent.iterdir()) == []
