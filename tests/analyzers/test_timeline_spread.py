"""A timeline made by workers, task by task, is the one that one process makes, byte for byte."""

import json
import logging
import os
import shutil
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers import timeline as made
from analyzers.timeline import pyramid, stored, timeline, traced
from analyzers.timeline.progress import STAGES, heard_by
from analyzers.timeline.spread import asking, work
from collectors.ingest import ingest
from collectors.ingesting.parts import spread as parts
from errors import InputError, QuestionError
from runs.integrity import mark
from runs.parts import Part, in_parts
from runs.run import facts_of
from runs.schema import SCHEMAS
from runs.spread import processes
from runs.spread.engine import EngineError, Outcome, named, perform
from runs.spread.processes import Processes
from runs.store import Store
from runs.told import tables_told
from runs.writer import TableFiles
from tests.analyzers.test_timeline_files import EVENT, tables
from tests.analyzers.test_timeline_progress import left
from tests.collectors.test_ahead import write
from tests.runs.objects import conftest as stores

HOSTS = 4


class Here:
    """An engine that is this process; tasks come to it as plain values, each twice. `asked`: those that came."""

    elsewhere = True

    def __init__(self, again: int = 2):
        self.asked, self._again = [], again

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def map(self, work, tasks, check, report):
        done = 0
        for task in tasks:
            check()
            self.asked.append(task)
            plain = json.loads(json.dumps(task.asked))
            with ThreadPoolExecutor(1) as elsewhere:  # a worker hears nothing of who listens here
                stamp = str(named(work.stamp)())
                answers = [elsewhere.submit(perform, work, stamp, plain).result() for _ in range(self._again)]
            done += task.weight
            report(done)
            yield Outcome(task=task, answer=answers[-1])


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """As if these runs were large, and so were their tasks."""
    monkeypatch.setattr(asking, "TASK_BYTES", 1)
    monkeypatch.setattr(asking, "LEAST_PLACED", 20)
    monkeypatch.setattr(asking, "PLACED", 40)
    monkeypatch.setattr(pyramid, "LEAST_EVENTS", 5)
    monkeypatch.setattr(asking, "LEAST_EVENTS", 5)
    monkeypatch.setattr(made, "MANY", 0)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Of the traces of four hosts, in parts, with steps, collectives and strips."""
    folder = tmp_path_factory.mktemp("inputs")
    write(folder, ranks=HOSTS)
    (folder / "job.log").unlink()  # without times of day: with it the ledger books no device
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "GATHERED_BYTES", 0)
        patch.setattr(parts, "TASK_FILES", 1)
        store = Store(tmp_path_factory.mktemp("store"))
        found = store.get(ingest([folder], store, engine=Here(1)).run_id)
    assert in_parts(found.manifest.files)
    return found


def written(run, engine=None) -> tuple[bytes, str]:
    """(the columns, what else is told of them) of a timeline that one process makes, or the workers of an engine."""
    folder = run.folder.parent.parent / "partial" / f"made-{threading.get_ident()}"
    (folder / "made").mkdir(parents=True)
    try:
        if engine is None:
            made._by_this_process(run.tables, run.manifest.facts, folder / "made")
        else:
            assert made._by_workers(run.tables, run.manifest.facts, "key", folder / "made", lambda: engine)
        assert [p.name for p in folder.iterdir()] == ["made"]
        assert {p.name for p in (folder / "made").iterdir()} == {stored.INDEX, stored.WHOLE}
        body = json.loads((folder / "made" / stored.INDEX).read_text().partition("\n")[2])
        del body["file"]  # when it was written
        return (folder / "made" / stored.WHOLE).read_bytes(), json.dumps(body)
    finally:
        shutil.rmtree(folder)


def test_it_is_that_of_one_process_to_the_last_byte(run):
    engine = Here()
    assert written(run, engine) == written(run)
    told = {
        kind: [t for t in engine.asked if t.key.startswith(kind)] for kind in ("events", "devices", "lanes", "sums")
    }
    assert all(len(tasks) >= HOSTS for tasks in told.values()), {kind: len(tasks) for kind, tasks in told.items()}
    assert len({task.key for task in engine.asked}) == len(engine.asked)
    for task in engine.asked:
        if "tables" in task.asked:  # what reads one capture is told of no part of another
            told = tables_told(task.asked["tables"])
            assert sum(name.startswith("tables/op_events/") for name in told._files.marks) == 1
    again = Here(1)
    written(run, again)
    assert [task.key for task in engine.asked] == [task.key for task in again.asked]


def test_of_a_run_whose_store_is_no_folder_workers_fetch_what_they_read(tmp_path, monkeypatch):
    place = stores.made("file", tmp_path, monkeypatch)
    write(tmp_path, ranks=2)
    (tmp_path / "job.log").unlink()
    run_id = ingest(sorted(tmp_path.glob("*.json")), place.open()).run_id
    there = place.open("two").get(run_id)
    assert not there.tables.in_a_folder and not (there.folder / "tables").exists()
    assert written(there, Here(1)) == written(place.open("three").get(run_id))
    monkeypatch.setenv("CHIPLEDGER_CLUSTER", "tcp://a:1")
    monkeypatch.setattr(made, "processors", lambda: 1)
    assert list(made.engines(there.tables)) == []  # a cluster sees no folder of this machine


def in_pieces(store: Store, columns: dict, files: bool):
    """A run of made rows. `files`: each capture's events are a file; else a few rows are a group of one file."""
    events = columns.pop("op_events")
    with store.writer() as writer:
        for table, rows in columns.items():
            writer.rows(table, SCHEMAS[table].batch(rows))
        for number in np.unique(events["capture"]).tolist() if files else [None]:
            chosen = [n for n, c in enumerate(events["capture"]) if number in (None, c)]
            path = Path(store.root) / f"beside-{number}"
            path.mkdir()
            out = TableFiles(path)
            for at in range(0, len(chosen), 9):
                some = {name: [rows[n] for n in chosen[at : at + 9]] for name, rows in events.items()}
                out.rows("op_events", SCHEMAS["op_events"].batch(some))
            out.close()
            part = Part(table="op_events", number=number or 0, captures=(number, number)).relative if files else None
            told = out.path("op_events")
            writer.take(part or "tables/op_events.parquet", told, mark(told))
            writer.counts["op_events"] = writer.counts.get("op_events", 0) + len(chosen)
        return writer.commit(run_id="a" * 64, name="made", kind="training", facts=facts_of({}), sources=[])


@settings(max_examples=5, deadline=None)
@given(
    st.lists(EVENT, min_size=1, max_size=60), st.booleans(), st.sampled_from((7, 1 << 20)), st.sampled_from((0, 10**10))
)
def test_whatever_a_run_holds(tmp_path_factory, events, files, piece, undated):
    """Captures on either side of a host, some without a time of day; operations numbered alike; times of no capture."""
    columns = tables(events)
    columns["captures"]["start_ns"][0] = None if undated else columns["captures"]["start_ns"][0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("analyzers.timeline.building.strips", lambda *_: ())  # the ledger's, which takes its time
        patch.setattr(asking, "booked", lambda *_: None)
        patch.setattr("runs.writer.GROUP_ROWS", 9)
        patch.setattr(pyramid, "CHUNK", piece)
        patch.setattr("analyzers.timeline.placing.CHUNK", piece)
        patch.setattr(work, "PIECE_ROWS", piece)
        patch.setattr(traced.traced, "__defaults__", (1 << 19,))
        run = in_pieces(Store(tmp_path_factory.mktemp("made")), columns, files)
        assert written(run, Here(1)) == written(run)


def test_a_run_of_which_nothing_has_a_place_in_time_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(asking, "booked", lambda *_: None)
    columns = tables([(0, 0, 0, 5, 5)])
    columns["captures"]["capture"] = [7, 8]
    del columns["requests"]
    with pytest.raises(QuestionError, match="nothing of this run has a place in time"):
        written(in_pieces(Store(tmp_path), columns, files=True), Here())


def test_a_run_that_is_removed_meanwhile_is_told_as_such(tmp_path, monkeypatch):
    monkeypatch.setattr(asking, "booked", lambda *_: None)
    run = in_pieces(Store(tmp_path), tables([(0, 0, 0, 5, 5)]), files=True)

    class Removing(Here):
        def map(self, work, tasks, check, report):
            shutil.rmtree(run.folder)
            yield from super().map(work, tasks, check, report)

    assert run.tables.rows("op_events") == 1
    with pytest.raises(InputError, match="the run was removed meanwhile"):
        written(run, Removing())


@pytest.fixture
def asked(run, monkeypatch):
    """Whoever asks for the timeline of the run; its files are gone before."""
    monkeypatch.delenv("CHIPLEDGER_CLUSTER", raising=False)
    root = run.folder.parent.parent
    for path in left(run):
        if (root / path).is_dir() and path.startswith("derived"):
            shutil.rmtree(root / path, ignore_errors=True)
    return partial(timeline, run.tables, run.manifest.facts, few=0)


def test_it_tells_how_far_it_is_and_never_goes_back(asked, monkeypatch):
    heard = []
    monkeypatch.setattr(made, "engines", lambda tables: [Here])
    with heard_by(lambda *what: heard.append(what)):
        of = asked()
    assert of.events and [s for n, (s, *_) in enumerate(heard) if not n or heard[n - 1][0] != s] == list(STAGES)
    for stage in STAGES:
        done = [done for one, done, whole in heard if one == stage]
        assert done == sorted(done) and all(a <= whole for one, a, whole in heard if one == stage)


@pytest.mark.parametrize("stage", STAGES)
def test_ended_at_any_stage_it_leaves_nothing(run, asked, monkeypatch, stage):
    class Ended(Exception):
        pass

    def listen(now, done, whole):
        if now == stage and done:
            raise Ended

    monkeypatch.setattr(made, "engines", lambda tables: [Here])
    with heard_by(listen), pytest.raises(Ended):
        asked()
    assert left(run) == []


def test_a_worker_that_ends_costs_its_task_alone(run, monkeypatch):
    monkeypatch.setattr(asking, "TASK_BYTES", 8 << 20)  # few tasks: each new process loads all that it needs
    monkeypatch.setattr(asking, "LEAST_PLACED", 1 << 19)
    monkeypatch.setattr(asking, "PLACED", 1 << 22)
    real, killed = processes.Processes._child, []

    def child(self):
        found = real(self)
        if not killed:
            killed.append(found.pid)
            os.kill(found.pid, signal.SIGKILL)
            found.wait()
        return found

    monkeypatch.setattr(processes.Processes, "_child", child)
    assert written(run, Processes(1)) == written(run) and killed


class Nobody(Here):
    def map(self, work, tasks, check, report):
        yield Outcome(task=tasks[0], problem="its worker was lost 4 times")


def test_where_workers_cannot_it_is_made_by_this_process(run, asked, monkeypatch, caplog):
    monkeypatch.setattr(made, "engines", lambda tables: [Nobody, partial(_refused, "no Dask scheduler answers")])
    with caplog.at_level(logging.WARNING):
        assert asked().events
    assert "lost 4 times" in caplog.text and "no Dask scheduler answers" in caplog.text
    assert all(path.startswith("derived") for path in left(run))


def _refused(why: str):
    raise EngineError(why)


def test_who_is_asked_is_what_the_machine_says_and_then_its_processes(run, monkeypatch):
    asked = []
    monkeypatch.setattr(made, "engine_of", asked.append)
    monkeypatch.setattr(made, "processors", lambda: 2)
    for told, wanted in (("", ["local"]), ("local", ["local"]), ("tcp://a:1", ["tcp://a:1", "local"])):
        monkeypatch.setenv("CHIPLEDGER_CLUSTER", told)
        asked.clear()
        for begun in made.engines(run.tables):
            begun()
        assert asked == wanted
    monkeypatch.setattr(made, "processors", lambda: 1)
    monkeypatch.delenv("CHIPLEDGER_CLUSTER")
    assert list(made.engines(run.tables)) == []


def test_few_events_are_placed_by_the_process_that_is_asked(asked, monkeypatch):
    monkeypatch.setattr(made, "MANY", 10**9)
    monkeypatch.setattr(made, "engines", lambda tables: pytest.fail("an engine was asked"))
    assert asked().events


def test_a_worker_that_does_not_see_the_store_says_so(tmp_path):
    with pytest.raises(EngineError, match="does not see the folder of the store"):
        work.put_down({"above": str(tmp_path / "nowhere"), "key": "a"})
