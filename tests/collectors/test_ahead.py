"""Several files read at once give what one after the other gives, to the last byte, and leave nothing behind."""

import json
import os
import signal
import subprocess
import threading
import time

import pytest

from collectors.ingest import ingest
from collectors.ingesting import ahead, ahead_child
from collectors.ingesting.gather import Cancelled
from errors import InputError
from runs.store import Store
from tests.collectors.ingesting import LOG, nothing_stored
from tests.collectors.kineto_traces import collective, kernel, launch, op, step, trace

RANKS = 5


def write(folder, ranks=RANKS, steps=6):
    """Traces of the ranks of a job, and its log."""
    for rank in range(ranks):
        events = []
        for n in range(steps):
            at = 1000 * n + 10 * rank
            events += [step(n, at, 900), op("aten::mm", at + 5, 20, [[8, 16], [16, 4]], ["float", "float"])]
            events += [launch(at + 10, 5, 2 * n + 1), launch(at + 20, 5, 2 * n + 2)]
            events += [kernel("gemm", at + 50, 300, 2 * n + 1), collective("allreduce", at + 400, 80, 2 * n + 2)]
        told = {"rank": rank, "world_size": ranks, "backend": "nccl"}
        (folder / f"rank{rank}.pt.trace.json").write_bytes(trace(events, distributedInfo=told))
    (folder / "job.log").write_text(LOG)


@pytest.fixture
def any_size(monkeypatch):
    """As if these files were large and the machine had three processors."""
    monkeypatch.setattr(ahead, "LEAST_BYTES", 0)
    monkeypatch.setattr(ahead, "processors", lambda: 3)


def content(run):
    return {p.relative_to(run.folder): p.read_bytes() for p in sorted(run.folder.rglob("*.parquet"))}


def stored(folder, where):
    store = Store(where)
    done = ingest([folder], store)
    return done, store.get(done.run_id), store


def test_tables_facts_and_warnings_are_those_of_one_after_the_other(tmp_path, folder, monkeypatch):
    write(folder)
    (folder / "broken.pt.trace.json").write_bytes((folder / "rank0.pt.trace.json").read_bytes()[:-700])
    (folder / "empty.pt.trace.json").write_bytes(trace([]))
    plain, before, _ = stored(folder, tmp_path / "plain")
    monkeypatch.setattr(ahead, "LEAST_BYTES", 0)
    monkeypatch.setattr(ahead, "processors", lambda: 3)
    started = []
    monkeypatch.setattr(ahead.Ahead, "_child", _counted(ahead.Ahead._child, started))
    several, after, store = stored(folder, tmp_path / "several")
    assert len(set(started)) == 3  # three processes read eight files
    assert content(before) == content(after) and len(content(before)) >= 8
    assert plain == several
    assert before.manifest.facts == after.manifest.facts
    assert list((store.root / "partial").iterdir()) == []


def _counted(child, started):
    def counted(self):
        made = child(self)
        started.append(made.pid)
        return made

    return counted


def test_small_files_start_no_process(tmp_path, folder, monkeypatch):
    write(folder)
    monkeypatch.setattr(ahead.subprocess, "Popen", lambda *_, **__: pytest.fail("a process was started"))
    done, _, _ = stored(folder, tmp_path / "store")
    assert done.tables["captures"] == RANKS


def test_whoever_changes_their_mind_ends_the_processes(folder, store, any_size, monkeypatch):
    write(folder)
    children = []
    made = ahead.Ahead._child

    def remembered(self):
        child = made(self)
        children.append(child)
        return child

    monkeypatch.setattr(ahead.Ahead, "_child", remembered)
    with pytest.raises(Cancelled):
        ingest([folder], store, cancel=lambda: bool(children))
    assert children and all(child.poll() is not None for child in children)
    assert nothing_stored(store)


def test_a_process_that_is_killed_costs_its_file_alone(tmp_path, folder, any_size, monkeypatch):
    write(folder)
    made, killed = ahead.Ahead._ask, []

    def ask(self, child, asked, file):
        if asked["name"].endswith("rank2.pt.trace.json"):
            os.kill(child.pid, signal.SIGKILL)
            killed.append(child.pid)
        made(self, child, asked, file)

    monkeypatch.setattr(ahead.Ahead, "_ask", ask)
    done, _, _ = stored(folder, tmp_path / "store")
    assert killed and done.tables["captures"] == RANKS - 1
    assert [w for w in done.warnings if "the process that read it ended (signal 9)" in w and "rank2" in w]


def test_where_no_file_can_be_read_nothing_is_stored(folder, store, any_size):
    for n in range(3):
        (folder / f"rank{n}.pt.trace.json").write_bytes(trace([], distributedInfo={"rank": n}))
    with pytest.raises(InputError, match="holds no event"):
        ingest([folder], store)
    assert nothing_stored(store)


def test_items_wait_on_disk_for_no_more_files_than_there_are_processes(folder, store, any_size, monkeypatch):
    write(folder, ranks=12, steps=2)
    most, kept = [0], ahead._kept

    def slowly(file):
        time.sleep(0.1)
        most.append(sum(p.name.startswith("items-") for p in file.out.parent.iterdir()))
        yield from kept(file)

    monkeypatch.setattr(ahead, "_kept", slowly)
    done = ingest([folder], store)
    assert done.tables["captures"] == 12 and 2 <= max(most) <= 4  # three processes, and the one that is taken in
    assert threading.active_count() < 20


def test_progress_never_goes_back_and_ends_at_the_whole(folder, store, any_size):
    write(folder)
    told = []
    ingest([folder], store, progress=lambda done, total, what: told.append((done, total)))
    shares = [done / total for done, total in told]
    assert shares == sorted(shares) and shares[-1] == 1


def _child(**how) -> subprocess.Popen:
    return subprocess.Popen(
        ahead.COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how
    )


def _asked(folder) -> str:
    return json.dumps(
        {
            "path": str(folder / "rank0.pt.trace.json"),
            "name": "rank0.pt.trace.json",
            "index": 0,
            "collector": "kineto",
            "out": str(folder / "items"),
        }
    )


def test_a_child_that_is_interrupted_says_nothing(tmp_path):
    """Ctrl-C reaches all processes of a terminal; a person is told once."""
    write(tmp_path, ranks=1)
    child = _child()
    assert child.stdin is not None and child.stdout is not None
    child.stdin.write(_asked(tmp_path) + "\n")
    child.stdin.flush()
    while '"done"' not in child.stdout.readline():
        assert child.poll() is None
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=60)[1] == "" and child.returncode == 1


def test_a_child_without_memory_or_without_who_asks_says_nothing(tmp_path):
    write(tmp_path, ranks=1)
    lacking = "import collectors.ingesting.items as i, runpy\ndef none(*_): raise MemoryError\ni.items_of = none\n"
    run = [ahead.COMMAND[0], "-c", f"{lacking}runpy.run_module({ahead_child.__name__!r}, run_name='__main__')"]
    ended = subprocess.run(run, input=_asked(tmp_path) + "\n", capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (1, "")
    child = _child()
    assert child.stdin is not None and child.stdout is not None and child.stderr is not None
    child.stdout.close()
    child.stdin.write(_asked(tmp_path) + "\n")
    child.stdin.close()
    assert child.stderr.read() == "" and child.wait(60) == 1
    child.stderr.close()
