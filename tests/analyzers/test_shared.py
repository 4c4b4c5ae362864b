"""What several questions work out of the same tables: once for all of them, never after a file changed."""

import os

import numpy as np
import pytest

from analyzers import shared
from analyzers.device.activity import activities, profiled_steps
from analyzers.device.host_work import STEPS, ThreadWork
from analyzers.intervals import Spans
from analyzers.ranks.waits import waits
from analyzers.shared import Shared
from runs.at_once import AtOnce
from runs.kept import Answers
from runs.store import Store
from runs.tables import MemoryTables, RowsOf
from tests.app import made_runs


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(shared, "_kept", Answers(1 << 20))


def counted(tables):
    asked = []
    return [Shared(t).get(("sum", n), lambda n=n: asked.append(1) or n) for t in tables for n in (1, 2)], len(asked)


def test_it_is_worked_out_once_by_tables_and_what_it_depends_on(tmp_path):
    store = Store(tmp_path / "store")
    run = made_runs.interrupted(store)
    again = store.find(run.run_id).tables
    assert counted([run.tables, again, AtOnce(again)]) == ([1, 2] * 3, 2)
    os.utime(run.tables.path("steps"), ns=(1, 1))
    assert counted([run.tables]) == ([1, 2], 2)


def test_tables_that_nothing_tells_from_others_keep_nothing():
    tables = MemoryTables({"steps": {"step": [1]}})
    part = RowsOf(tables, "steps", np.zeros(1, np.int64))
    assert counted([part, part, AtOnce(part)])[1] == 6
    assert counted([tables, MemoryTables({})])[1] == 4


def test_who_changes_rows_changes_only_his_own():
    told = {"host": ["a"], "step": [3], "start_ns": [5], "dur_ns": [7], "capture": [0]}
    collective = {"capture": [0], "host": ["a"], "device": [0], "kind": ["all-reduce"], "start_ns": [1], "end_ns": [2]}
    tables = MemoryTables({"steps": told, "collectives": collective})
    steps, rows = profiled_steps(tables), waits(tables).rows
    steps["step"], rows["wait_ns"] = 9, 9
    assert profiled_steps(tables)["step"].tolist() == [3] and waits(tables).rows["wait_ns"].tolist() == [0]


def profile(line="python"):
    """A host's thread with a step and an operator in it, and one kernel."""
    ops = {
        "capture": [0, 0, 0],
        "op_id": [0, 1, 2],
        "host": ["a"] * 3,
        "device": [None, None, 0],
        "line": [line, line, "stream 7"],
        "role": ["host", "host", "compute"],
        "category": ["annotation", "host", "matmul"],
        "op": ["train", "aten::mm", "gemm"],
    }
    events = {
        "capture": [0, 0, 0],
        "event": [0, 1, 2],
        "device": [None, None, 0],
        "op_id": [0, 1, 2],
        "start_ps": [0, 10_000, 30_000],
        "dur_ps": [90_000, 20_000, 40_000],
    }
    captures = {"capture": [0], "host": ["a"], "start_ns": [1_000]}
    return MemoryTables({"ops": ops, "op_events": events, "captures": captures})


@pytest.mark.parametrize("line", ["python", ""])
def test_the_thread_of_the_steps_is_worked_out_as_the_thread_that_it_is(line):
    work = ThreadWork(profile(line), 0, 1_000)
    found = work.of(STEPS)
    assert found["launching"].start.tolist() == [1_010] and found["launching"].end.tolist() == [1_030]
    assert work.of(line) is found and ThreadWork(profile(line), 0, 1_000).of("none") == {}


def test_a_device_is_looked_at_once_for_all_who_ask():
    tables = profile()
    (one,), (other,) = activities(tables), activities(AtOnce(tables))
    assert one is other and one.computation.start.tolist() == [1_030]
    (anew,) = activities(profile())
    assert anew is not one


def test_what_is_kept_is_bounded_by_the_arrays_in_tuples_too(monkeypatch):
    kept = Answers(120_000)
    monkeypatch.setattr(shared, "_kept", kept)
    tables = MemoryTables({})
    for n in range(4):
        Shared(tables).get((n,), lambda: Spans(np.zeros(4_000, np.int64), np.zeros(0, np.int64)))  # 52 kB
    assert [kept.known((tables.state, n)) is not None for n in range(4)] == [False, False, True, True]
