"""Collectives matched across ranks: by step and order, however the rows are ordered, and only where all were there."""

import numpy as np
import pyarrow as pa
import pytest

from analyzers.ranks.meetings import combined, meetings
from analyzers.ranks.waits import waits
from runs.tables import MemoryTables
from tests.analyzers.rank_worlds import RankWorld


def shuffled(tables, seed=0):
    rows = tables.arrow("collectives")
    order = np.random.default_rng(seed).permutation(len(rows))
    rows = rows.take(pa.array(order))
    return MemoryTables({"collectives": {n: rows[n].combine_chunks() for n in rows.column_names}})


def by_hand(tables):
    """{(step, group, op): {rank: duration}} of one collective per place."""
    out = {}
    for r in tables.arrow("collectives").to_pylist():
        out.setdefault((r["step"], r["group"], r["op"]), {})[r["rank"]] = r["end_ns"] - r["start_ns"]
    return out


@pytest.mark.parametrize("cell", [0, 4])
def test_rows_meet_as_a_dictionary_of_them_says(cell):
    tables = shuffled(RankWorld(ranks=8, steps=5, segments=3, cell=cell).tables())
    met, rows = meetings(tables), tables.arrow("collectives").to_pylist()
    expected = by_hand(tables)
    assert met.complete.all() and met.comparable.all()
    assert len(np.unique(met.meeting)) == len(expected)
    least = met.least(met.dur_ns)[met.meeting]
    for i, r in enumerate(rows):
        assert least[i] == min(expected[r["step"], r["group"], r["op"]].values())
        assert met.ranks["label"].iloc[met.rank[i]] == str(r["rank"])


def test_waits_are_in_the_order_of_the_table():
    tables = shuffled(RankWorld(ranks=8, steps=5, segments=2).tables())
    waited, rows = waits(tables), tables.arrow("collectives").to_pylist()
    expected = by_hand(tables)
    assert waited.rows["start_ns"].tolist() == [r["start_ns"] for r in rows]
    for got, r in zip(waited.rows.to_dict("records"), rows, strict=True):
        assert (got["host"], got["device"], got["op"], got["kind"]) == (r["host"], r["device"], r["op"], r["kind"])
        assert got["matched"] == (r["step"] > 0)  # the first step of a capture may be cut off
        durations = expected[r["step"], r["group"], r["op"]]
        assert got["wait_ns"] == (durations[r["rank"]] - min(durations.values()) if r["step"] else 0)
    assert (waited.matched, waited.lone) == (len(rows), 0)


def test_the_same_operation_again_in_a_step_is_another_meeting():
    once = {
        "rank": [0, 1],
        "device": [0, 1],
        "host": ["h", "h"],
        "kind": ["all-reduce"] * 2,
        "op": ["a", "a"],
        "step": [1, 1],
        "start_ns": [0, 5],
        "end_ns": [10, 10],
        "capture": [0, 0],
    }
    later = {**once, "start_ns": [20, 21], "end_ns": [30, 30]}
    met = meetings(MemoryTables({"collectives": {n: [*once[n], *later[n]] for n in once}}))
    assert met.meeting[0] == met.meeting[1] != met.meeting[2] == met.meeting[3]


def test_a_rank_that_is_missing_makes_a_meeting_incomplete():
    rows = RankWorld(ranks=4, steps=3).tables().arrow("collectives").to_pydict()
    keep = [not (r == 2 and s == 1) for r, s in zip(rows["rank"], rows["step"], strict=True)]
    met = meetings(
        MemoryTables({"collectives": {n: [v for v, k in zip(c, keep, strict=True) if k] for n, c in rows.items()}})
    )
    assert set(met.step[~met.complete]) == {1} and set(met.step[met.complete]) == {0, 2}


def test_captures_taken_together_are_one_session_though_one_was_lost():
    """Two windows on three ranks, steps numbered alike; rank 1's first window is gone."""
    rows = {n: [] for n in ("capture", "host", "device", "kind", "op", "step", "start_ns", "end_ns")}
    starts = {}
    for window in range(2):
        for rank in range(3):
            if (window, rank) == (0, 1):
                continue
            capture = window * 3 + rank
            starts[capture] = window * 10**12 + rank * 10**6
            for step in range(3):
                at = starts[capture] + step * 1000
                values = (capture, f"h{rank}", 0, "all-reduce", "a", step, at, at + 100 + rank)
                for name, value in zip(rows, values, strict=True):
                    rows[name].append(value)
    captures = {"capture": list(starts), "host": [f"h{c % 3}" for c in starts], "start_ns": list(starts.values())}
    met = meetings(MemoryTables({"collectives": rows, "captures": captures}))
    assert set(met.session[met.complete]) == {1} and met.complete.sum() == 9


def test_no_rows_at_all():
    met = meetings(MemoryTables({}))
    assert len(met.rank) == len(met.ranks) == len(met.least(met.dur_ns)) == 0


def test_keys_are_equal_exactly_where_all_their_parts_are():
    rng = np.random.default_rng(0)
    parts = [rng.integers(0, 2**40, 1000) // 2**38 * 2**38 + rng.integers(0, 2, 1000) for _ in range(3)]
    key = combined(*parts)
    together = np.stack(parts)
    for i in range(0, 1000, 50):
        assert ((key == key[i]) == (together == together[:, [i]]).all(axis=0)).all()
