"""Columns that are held tell what the file tells: read once for all who ask, and anew once the file was touched."""

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from errors import InputError
from runs import tables as of_tables
from runs.held_columns import HeldColumns
from runs.matching import matching
from runs.store import Store
from runs.tables import filter_of
from tests.app import made_runs

TEXTS = ("a", "b", None)


class Read:
    """A file of four columns that counts what is read of it."""

    def __init__(self):
        self.asked = []

    def __call__(self, names):
        self.asked.append(names)
        return pa.table({name: list(range(10)) for name in names})


def test_a_column_is_read_once_and_those_that_lack_beside_it():
    held, read = HeldColumns(), Read()
    assert held.of("file", ["x", "y"], read).column_names == ["x", "y"]
    assert held.of("file", ["z", "y"], read).column_names == ["z", "y"]
    assert held.of("file", ["y", "x", "z"], read).num_rows == 10
    assert held.of("touched", ["x"], read).num_rows == 10
    assert read.asked == [["x", "y"], ["z"], ["x"]]


def test_the_files_not_asked_for_longest_are_let_go():
    held, read = HeldColumns(most_bytes=160), Read()  # two columns of ten numbers
    for file in ("first", "second", "first", "third", "first"):
        held.of(file, ["x"], read)
    assert len(read.asked) == 3
    held.of("second", ["x"], read)
    assert len(read.asked) == 4
    assert held.of("larger than all", ["x", "y", "z"], read).num_rows == 10
    held.of("larger than all", ["x"], read)
    assert len(read.asked) == 6


conditions = st.one_of(
    st.tuples(st.just("n"), st.sampled_from(("==", "!=", "<", "<=", ">", ">=")), st.integers(-1, 4)),
    st.tuples(st.just("n"), st.sampled_from(("in", "not in")), st.lists(st.integers(-1, 4))),
    st.tuples(st.just("t"), st.sampled_from(("==", "!=")), st.sampled_from("abc")),
    st.tuples(st.just("t"), st.sampled_from(("in", "not in")), st.lists(st.sampled_from("abc"), min_size=1)),
)


@given(st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 3)), st.sampled_from(TEXTS))), st.lists(conditions))
def test_rows_are_those_that_the_engine_for_datasets_finds(rows, where):
    texts = pa.array([t for _, t in rows], pa.string()).dictionary_encode()
    numbers = pa.array([n for n, _ in rows], pa.int32())
    table = pa.table({"n": numbers, "t": texts, "row": list(range(len(rows)))})
    expected = table.filter(filter_of(where)) if where else table
    assert matching(table, where)["row"].to_pylist() == expected["row"].to_pylist()


def test_no_text_is_among_none():
    table = pa.table({"t": pa.array(["a", None]).dictionary_encode()})
    assert matching(table, [("t", "in", [])]).num_rows == 0 and matching(table, [("t", "not in", [])]).num_rows == 2


def test_an_operator_that_is_none_is_refused():
    with pytest.raises(ValueError, match="no operator"):
        matching(pa.table({"n": [1]}), [("n", "~", 1)])


def test_questions_of_a_run_share_what_is_read_and_a_touched_file_is_looked_at_anew(tmp_path, monkeypatch):
    store = Store(tmp_path / "store")
    run = made_runs.interrupted(store)
    asked = []
    monkeypatch.setattr(pq.ParquetFile, "read", read_and_told(asked))
    monkeypatch.setattr(of_tables, "_columns", HeldColumns())
    for _ in range(2):
        rows = store.find(run.run_id).tables.arrow("steps", ["step", "dur_ns"], [("step", ">=", 5)])
        assert rows.column_names == ["step", "dur_ns"] and min(rows["step"].to_pylist()) == 5
        store.find(run.run_id).tables.arrow("steps", ["start_ns"])
    assert len(asked) == 1
    path = run.tables.path("steps")
    os.utime(path, ns=(1, 1))
    assert run.tables.arrow("steps", ["step"]).num_rows == run.tables.rows("steps") and len(asked) == 2
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(InputError, match="is not what was written"):
        run.tables.arrow("steps", ["step"])


def read_and_told(asked):
    read = pq.ParquetFile.read

    def told(self, columns=None, **given):
        asked.append(columns)
        return read(self, columns, **given)

    return told
