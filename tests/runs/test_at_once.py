"""Tables read once for all captures and devices tell the same rows in the same order as one question at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.at_once import AtOnce
from runs.store import Store
from runs.tables import MemoryTables, frame
from tests.app import made_runs

COLUMNS = ("op_id", "start_ps", "dur_ps")


class Counted(MemoryTables):
    def __init__(self, tables):
        super().__init__(tables)
        self.asked = []

    def arrow(self, name, columns=None, where=None):
        self.asked.append((name, where))
        return super().arrow(name, columns, where)


def events(captures: list[int | None], seed: int = 0) -> dict:
    draw, count = np.random.default_rng(seed), len(captures)
    told = {n: draw.integers(0, 99, count).tolist() for n in COLUMNS}
    device = [None if n % 7 == 3 else n % 3 for n in range(count)]
    return {"capture": captures, "event": list(range(count)), "device": device, **told}


@given(st.lists(st.one_of(st.none(), st.integers(0, 4)), max_size=30), st.integers(-1, 6), st.integers(0, 3))
def test_rows_are_those_that_are_told_one_question_at_a_time(captures, capture, device):
    plain = MemoryTables({"op_events": events(captures)})
    once = AtOnce(plain)
    for where in (
        [("capture", "==", capture)],
        [("capture", "==", capture), ("device", "==", device)],
        [("capture", "==", capture), ("device", ">=", 0), ("op_id", "<", 50)],
        [("device", "==", device)],
        None,
    ):
        for columns in (COLUMNS, ("dur_ps", "op_id"), None):
            a, b = (t.arrow("op_events", columns, where) for t in (plain, once))
            assert a.column_names == b.column_names and a.to_pydict() == b.to_pydict()
    assert once.rows("op_events") == len(captures) and once.rows("steps") == 0


def test_the_file_is_read_once_and_a_table_of_more_rows_is_asked_each_time():
    tables = Counted({"op_events": events([n % 5 for n in range(50)])})
    once, each = AtOnce(tables), AtOnce(tables, most_rows=49)
    for capture in range(5):
        once.arrow("op_events", COLUMNS, [("capture", "==", capture), ("device", "==", 1)])
    assert len(tables.asked) <= 3
    tables.asked.clear()
    for capture in range(5):
        each.arrow("op_events", COLUMNS, [("capture", "==", capture), ("device", "==", 1)])
    assert len(tables.asked) == 5


@pytest.mark.parametrize("ordered", [True, False])
def test_of_files_texts_and_missing_values_are_the_same_too(tmp_path, ordered):
    captures = [n // 4 if ordered else n % 3 for n in range(12)]
    ops = {"capture": captures, "op_id": list(range(12)), "host": ["a", None, "b"] * 4, "device": [0, 1, None] * 4}
    ops |= {"op": [f"o{n}" for n in range(12)], "role": ["compute"] * 12, "category": ["matmul", None] * 6}
    run = made_runs.write(Store(tmp_path), "made", {"ops": ops}, {})
    for where in ([("capture", "==", 1)], [("capture", "==", 1), ("device", "==", 0)]):
        a, b = (frame(t, "ops", ["op_id", "host", "op", "category"], where) for t in (run.tables, AtOnce(run.tables)))
        assert a.astype(object).where(a.notna(), None).to_dict() == b.astype(object).where(b.notna(), None).to_dict()
        assert (a.dtypes.astype(str) == b.dtypes.astype(str)).all()
