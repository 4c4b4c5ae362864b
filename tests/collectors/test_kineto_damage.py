"""Damaged traces of the PyTorch profiler: what is whole is read, the rest is named."""

import contextlib
import gzip
import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.base import Rows, Source
from collectors.device import kineto
from collectors.device.kineto import spill, stream
from collectors.device.kineto.nesting import Numbered
from collectors.device.kineto.texts import Texts
from collectors.device.kineto.tokens import NONE, real, scaled
from errors import InputError
from tests.collectors.kineto_traces import event, kernel, launch, op, step, trace
from tests.collectors.reading import read, source_of


def names(result):
    ops = {row["op_id"]: row["op"] for row in result.rows["ops"]}
    return [ops[e["op_id"]] for e in sorted(result.rows["op_events"], key=lambda e: e["event"])]


def got(tmp_path, data):
    return read(kineto, source_of(tmp_path, data))


def many(n):
    return [kernel(f"k{i}", 10 * i, 5, i) for i in range(n)]


def test_a_trace_cut_short_is_read_as_far_as_it_goes(tmp_path):
    whole = trace(many(50))
    for cut in range(len(whole) - 1, 400, -61):
        result = got(tmp_path, whole[:cut])
        assert names(result) == [f"k{i}" for i in range(len(names(result)))]
        assert "the end of the file" in result.reasons()
    assert len(names(got(tmp_path, whole))) == 50


def test_a_cut_archive_is_read_as_far_as_it_goes(tmp_path):
    packed = gzip.compress(trace(many(5000)))
    result = got(tmp_path, packed[: len(packed) // 2])
    assert 1000 < len(names(result)) < 5000 and "the rest of the gzip archive" in result.reasons()


def test_what_profilers_write_instead_of_numbers_costs_that_value_alone(tmp_path):
    text = [
        '{"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 1, "dur": 1, '
        '"args": {"memory bandwidth (GB/s)": inf, "queued": N/A, "x": -Infinity, "y": NaN, "stream": 7, "device": 0}}',
        '{"ph": "X", "cat": "kernel", "name": "b", "pid": 0, "tid": 7, "ts": 2, "dur": 1, '
        '"args": {"blocks per SM": 1,25, "warps per SM": 10,5, "stream": 7, "device": 0}}',
        '{"ph": "X", "cat": "kernel", "name": "c", "pid": 0, "tid": 7, "ts": NaN, "dur": 1}',
    ]
    result = got(tmp_path, trace(text))
    assert names(result) == ["a", "b"]
    assert "7 values: they are no JSON" in result.reasons()
    assert {s["name"] for s in result.rows["event_stats"]} == {"stream", "device", "blocks per SM", "warps per SM"}


def test_control_characters_and_backslashes_stay_in_names(tmp_path):
    frame = event("python_function", "PLACE", 1, 1)
    text = json.dumps(frame).replace("PLACE", "a\x01b\tc\\u00e9")
    path = json.dumps(frame).replace("PLACE", r"C:\jobs\train.py(3): main")
    result = got(tmp_path, trace([text, path]))
    assert names(result) == ["a\x01b\tcé", r"C:\jobs\train.py(3): main"]


def test_wrong_nesting_costs_one_event(tmp_path):
    broken = '{"ph": "X", "name": "broken", "ts": 1, "dur": 1, "args": {"a": [1, 2}}'
    result = got(tmp_path, trace([*many(2), broken, kernel("last", 90, 1, 9)]))
    assert names(result) == ["k0", "k1", "last"] and "1 events: they are no JSON objects" in result.reasons()


@pytest.mark.parametrize("bomb", ["[" * 100_000, '{"a":' * 100_000, '"args": {"a": ' + "[" * 70 + "]" * 70 + "}"])
def test_nesting_without_end_costs_one_event(tmp_path, bomb):
    broken = '{"ph": "X", "name": "broken", "args": {"a": ' + bomb + "}}"
    result = got(tmp_path, trace([kernel("first", 1, 1, 1), broken, kernel("last", 90, 1, 9)]))
    assert names(result) == ["first", "last"]


def test_of_a_key_that_comes_twice_the_last_counts(tmp_path):
    twice = '{"ph": "X", "cat": "kernel", "name": "a", "name": "b", "ts": 1, "ts": 2, "dur": 1, "dur": 3}'
    assert names(got(tmp_path, trace([twice]))) == ["b"]


def test_both_lists_of_events_are_read(tmp_path):
    data = (
        trace([kernel("a", 1, 1, 1)])[:-1] + b', "traceEvents": [' + json.dumps(kernel("b", 2, 1, 2)).encode() + b"]}"
    )
    assert names(got(tmp_path, data)) == ["a", "b"]


def test_events_may_stand_in_any_order(tmp_path):
    events = [step(1, 0, 100), op("aten::mm", 5, 20), launch(7, 1, 3), kernel("gemm", 50, 5, 3), op("aten::t", 6, 1)]

    def told(given):
        result = got(tmp_path, trace(given))
        return sorted((o["op"], o["count"], o["self_ns"], o["role"]) for o in result.rows["ops"])

    assert told(events) == told(events[::-1])


def test_a_single_event_far_away_moves_nothing(tmp_path):
    result = got(tmp_path, trace([kernel("stray", -2e12, 1, 1), *many(9)]))
    assert names(result) == [f"k{i}" for i in range(9)]
    assert min(e["start_ps"] for e in result.rows["op_events"]) == 0


def test_a_million_names_are_not_a_million_times_the_work(tmp_path):
    lines = ",".join(
        f'{{"ph":"X","cat":"cpu_op","name":"n{i}","pid":1,"tid":1,"ts":{i},"dur":1}}' for i in range(200_000)
    )
    source = source_of(tmp_path, b'{"schemaVersion": 1, "traceEvents": [' + lines.encode() + b"]}")
    rows = sum(item.batch.num_rows for item in kineto.read(source) if isinstance(item, Rows) and item.table == "ops")
    assert rows == 200_000


def test_beyond_a_number_of_names_the_rest_share_one(tmp_path, monkeypatch):
    monkeypatch.setattr("collectors.device.kineto.texts.MOST_TEXTS", 1 << 14)
    events = [op(f"n{i}", i, 1) for i in range(20_000)]
    result = got(tmp_path, trace(events))
    assert len(result.rows["op_events"]) == 20_000
    assert "one of too many names" in result.column("ops", "op") and "different ones are not kept" in result.reasons()


def test_rows_on_disk_are_those_in_memory(tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    events = []
    for i in rng.permutation(3000).tolist():
        events += [op("aten::mm", 100 * i, 90, tid=i % 3), launch(100 * i + 5, 1, i, tid=i % 3)]
        events += [op("within", 100 * i + 10, 20, tid=i % 3), kernel("gemm", 100 * i + 50, 20, i)]
    data = trace([op("outer", 0, 200_000, tid=0), *events])

    def told():
        result = got(tmp_path, data)
        key = lambda o: (o["op"], o["line"])  # noqa: E731
        ops = sorted(((*key(o), o["count"], o["total_ns"], o["self_ns"]) for o in result.rows["ops"]), key=str)
        return ops, sorted((e["event"], e["start_ps"], e["dur_ps"]) for e in result.rows["op_events"])

    in_memory = told()
    monkeypatch.setattr(stream, "BATCH_ROWS", 512)
    original = spill.Spill.__init__
    monkeypatch.setattr(spill.Spill, "__init__", lambda self, kind: original(self, kind, 2000))
    assert told() == in_memory


def test_memory_does_not_grow_with_the_host_events_of_a_trace(tmp_path, monkeypatch):
    original = spill.Spill.__init__
    monkeypatch.setattr(spill.Spill, "__init__", lambda self, kind: original(self, kind, 20_000))
    line = '{{"ph":"X","cat":"python_function","name":"f","pid":1,"tid":1,"ts":{},"dur":1,"args":{{"Python id":1}}}}'

    def peak(n):
        data = '{"schemaVersion":1,"traceEvents":[' + ",".join(line.format(2 * i) for i in range(n)) + "]}"
        source = source_of(tmp_path, data)
        del data
        tracemalloc.start()
        rows = sum(i.batch.num_rows for i in kineto.read(source) if isinstance(i, Rows) and i.table == "op_events")
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert rows == n
        return most

    peak(1000)
    assert peak(400_000) < 1.2 * peak(100_000)


@settings(deadline=None)
@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**15), max_value=10**15))
def test_decimals_become_nanoseconds_exactly(number):
    raw = np.frombuffer(f"{number:f}".encode(), np.uint8)
    assert scaled(raw, 0, len(raw), 3) == int(number * 1000)


@given(st.text(alphabet="0123456789.eE+-", max_size=30))
@settings(max_examples=300, deadline=None)
def test_a_number_is_one_or_none(text):
    raw = np.frombuffer(text.encode() or b"x", np.uint8)
    found = int(scaled(raw, 0, len(raw), 0))
    if found != NONE:
        assert abs(found - float(text)) <= max(0.51, 1e-6 * abs(float(text)))


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_real_numbers_are_read_to_fifteen_digits(number):
    raw = np.frombuffer(repr(number).encode(), np.uint8)
    assert real(raw, 0, len(raw)) == pytest.approx(number, rel=1e-14)


@settings(deadline=None)
@given(st.lists(st.binary(max_size=12), max_size=200))
def test_texts_come_back_by_their_numbers(given_texts):
    texts = Texts(rows=2, room=4)
    words = [t.decode("latin-1").replace("\\", "") for t in given_texts]
    codes = [texts.of(w) for w in words]
    assert [texts[c] for c in codes] == words and len(texts) == len(set(words))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), max_size=100))
def test_rows_have_a_number_each(rows):
    found = Numbered(2, room=1).of(*np.array(rows, np.int64).reshape(-1, 2).T)
    first = {row: n for n, row in enumerate(dict.fromkeys(rows))}
    assert found.tolist() == [first[row] for row in rows]


def test_a_trace_that_lies_nowhere_is_refused(tmp_path):
    for data in (b"{", b'{"traceEvents"', b'{"schemaVersion": 1, "traceEvents": 5}', b'{"traceEvents": [{}]}'):
        with pytest.raises(InputError), contextlib.suppress(OSError):
            for _ in kineto.read(Source(source_of(tmp_path, data).path, "x.json")):
                pass
