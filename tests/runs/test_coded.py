"""Columns as numbers tell the same as Python's own values, however the column lies in memory."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from runs.coded import coded, flags, numbers, told
from runs.columns import TEXT

WORDS = st.one_of(st.none(), st.sampled_from(["", "a", "b", "stream 7"]))
CHUNKS = st.lists(st.lists(WORDS, max_size=6), max_size=4)


def table(chunks: list[list[str | None]]) -> pa.Table:
    """Each chunk with a dictionary of its own."""
    return pa.table({"x": pa.chunked_array([pa.array(c, pa.string()).dictionary_encode() for c in chunks], TEXT)})


@given(CHUNKS, st.integers(0, 5))
def test_texts_by_number_are_those_of_the_rows(chunks, skipped):
    rows = table(chunks).slice(skipped)
    plain = [text or "" for text in rows["x"].to_pylist()]
    for one in (coded(rows, "x"), coded(rows, "x").as_they_come()):
        assert [one.texts[n] for n in one.code] == plain
        assert one.among(("a", "")).tolist() == [text in ("a", "") for text in plain]
        assert [one.texts[n] for n in one.of(np.arange(len(plain))[::-2]).code] == plain[::-2]


@given(CHUNKS)
def test_texts_come_in_the_order_of_the_rows_each_once(chunks):
    rows = table(chunks)
    assert coded(rows, "x").as_they_come().texts == tuple(dict.fromkeys(text or "" for text in rows["x"].to_pylist()))


@given(st.lists(st.one_of(st.none(), st.booleans())))
def test_what_is_not_known_is_false(values):
    assert flags(pa.table({"x": pa.array(values, pa.bool_())}), "x").tolist() == [bool(v) for v in values]


def test_rows_that_lack_a_column_are_left_out():
    rows = pa.table({"a": [1, None, 3, 4], "b": [None, 2, 3, 4], "c": [None, None, None, 9]})
    assert told(rows, ("a", "b")).to_pydict() == {"a": [3, 4], "b": [3, 4], "c": [None, 9]}
    assert told(rows, ()) is rows


def test_numbers_of_several_chunks_are_one_array():
    rows = pa.table({"x": pa.chunked_array([[1, 2], [], [3]], pa.int32())})
    assert numbers(rows, "x").tolist() == [1, 2, 3]
    assert numbers(rows.slice(3), "x").tolist() == []
