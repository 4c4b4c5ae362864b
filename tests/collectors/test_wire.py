"""The wire walk against protobuf's own runtime, whole, cut and damaged, through windows of any size."""

import io

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.device.xplane.wire import BYTES, FIXED32, FIXED64, VARINT, Window, skip, varint
from collectors.reading.protobuf import message_types

NODE = message_types("chipledger.wire", "Node: int64* number=1, double* real=2, bytes* text=3, Node* child=4")["Node"]


def encoded(value: int) -> bytes:
    out = bytearray()
    value %= 1 << 64
    while True:
        out.append(value & 127 | (128 if value > 127 else 0))
        value >>= 7
        if not value:
            return bytes(out)


def array(data: bytes) -> np.ndarray:
    return np.frombuffer(bytearray(data), np.uint8)


fields = st.lists(
    st.tuples(st.integers(1, 1 << 28), st.just(VARINT), st.integers(-(1 << 63), (1 << 63) - 1))
    | st.tuples(st.integers(1, 1 << 28), st.just(BYTES), st.binary(max_size=90))
    | st.tuples(st.integers(1, 1 << 28), st.just(FIXED64), st.binary(min_size=8, max_size=8))
    | st.tuples(st.integers(1, 1 << 28), st.just(FIXED32), st.binary(min_size=4, max_size=4)),
    max_size=40,
)


def message(parts) -> bytes:
    out = b""
    for number, wire, value in parts:
        out += encoded(number << 3 | wire)
        out += encoded(value) if wire == VARINT else (encoded(len(value)) if wire == BYTES else b"") + value
    return out


def walked(data: bytes, capacity: int, end: int | None = None):
    window = Window(io.BytesIO(data), capacity)
    rows, damage = [], None
    for table, bad in window.walk(0, len(data) if end is None else end):
        rows += [tuple(int(v) for v in row) for row in zip(*table, strict=True)]
        damage = bad
    return rows, damage


@settings(deadline=None)  # the first example compiles
@given(st.integers(-(1 << 63), (1 << 63) - 1), st.binary(max_size=3))
def test_varint_round_trip(value, tail):
    data = encoded(value)
    assert varint(array(data + tail), 0, len(data + tail)) == (value, len(data))
    for cut in range(len(data)):
        assert varint(array(data), 0, cut)[1] == -1


def test_a_varint_has_at_most_ten_bytes():
    data = b"\xff" * 11 + b"\x01"
    assert varint(array(data), 0, len(data))[1] == -2
    assert varint(array(b"\xff" * 9 + b"\x01"), 0, 10) == (-1, 10)


def test_skip_refuses_groups_and_field_zero():
    data = array(b"\x00" * 16)
    assert skip(data, (5 << 3) | 3, 0, 16) == -2
    assert skip(data, VARINT, 0, 16) == -2
    assert skip(data, (5 << 3) | FIXED64, 9, 16) == -1


@settings(deadline=None)  # the first example compiles
@given(fields, st.integers(20, 200))
def test_walk_finds_every_field_through_any_window(parts, capacity):
    data = message(parts)
    rows, damage = walked(data, capacity)
    assert damage is None
    assert [(n, w) for n, w, _, _ in rows] == [(n, w) for n, w, _ in parts]
    for (_, wire, start, length), (_, _, value) in zip(rows, parts, strict=True):
        assert (length == value) if wire == VARINT else (data[start : start + length] == value)


@given(fields, st.data())
def test_walk_over_a_cut_message_keeps_what_is_whole(parts, data):
    whole = message(parts)
    cut = data.draw(st.integers(0, len(whole)))
    rows, damage = walked(whole[:cut], data.draw(st.integers(20, 200)))
    full, _ = walked(whole, 1 << 16)
    complete = [r for r in full if r[2] + (r[3] if r[1] != VARINT else 0) <= cut]
    kept = [r for r in rows if r[1] != BYTES or r[2] + r[3] <= cut]
    # A varint that lost its end is the only thing that may still be missing from `complete`.
    assert kept == complete[: len(kept)] and len(kept) >= len(complete) - 1
    boundaries = {0, *(len(message(parts[:i])) for i in range(len(parts) + 1))}
    assert (damage is None) == (cut in boundaries)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300), st.integers(20, 64))
def test_noise_ends_the_walk_and_moves_only_forward(data, capacity):
    rows, damage = walked(data, capacity)
    starts = [r[2] for r in rows]
    assert starts == sorted(starts)
    assert damage is None or 0 <= damage <= len(data)
    for _, wire, start, length in rows[:-1]:
        assert wire != BYTES or start + length <= len(data)


def test_a_false_length_asks_for_no_memory():
    data = encoded(3 << 3 | BYTES) + encoded(1 << 60) + b"abc"
    window = Window(io.BytesIO(data), 1 << 16)
    rows, damage = window.fields(0, len(data))
    assert damage == 0 and rows.length.tolist() == [1 << 60]
    assert window.bytes(int(rows.start[0]), 1 << 60) == b"abc"
    buffer, _, have = window.at(0, 1 << 60)
    assert len(buffer) == have == len(data)


@given(
    st.recursive(
        st.just({}),
        lambda kids: st.fixed_dictionaries(
            {
                "number": st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=4),
                "real": st.lists(st.floats(allow_nan=False), max_size=3),
                "text": st.lists(st.binary(max_size=9), max_size=3),
                "child": st.lists(kids, max_size=3),
            },
        ),
        max_leaves=8,
    )
)
def test_walk_agrees_with_protobuf(tree):
    def build(node, spec):
        for key, values in spec.items():
            for value in values:
                build(node.child.add(), value) if key == "child" else getattr(node, key).append(value)
        return node

    def check(window, start, end, node):
        rows, damage = window.fields(start, end)
        assert damage is None
        kids = iter(node.child)
        texts = [
            window.bytes(int(s), int(n)) for f, s, n in zip(rows.number, rows.start, rows.length, strict=True) if f == 3
        ]
        assert texts == list(node.text)
        for number, at, length in zip(rows.number, rows.start, rows.length, strict=True):
            if number == 4:
                check(window, int(at), int(at + length), next(kids))
        assert next(kids, None) is None

    root = build(NODE(), tree)
    data = root.SerializeToString()
    check(Window(io.BytesIO(data), 32), 0, len(data), root)


@given(
    st.dictionaries(st.integers(-(1 << 63), (1 << 63) - 1), st.binary(max_size=40), max_size=20), st.integers(64, 300)
)
def test_names_of_map_entries(names, capacity):
    data, ranges = b"", []
    for key, name in names.items():
        value = encoded(1 << 3) + encoded(key) + encoded(2 << 3 | BYTES) + encoded(len(name)) + name
        entry = encoded(1 << 3) + encoded(key) + encoded(2 << 3 | BYTES) + encoded(len(value)) + value
        ranges.append((len(data), len(entry)))
        data += entry
    window = Window(io.BytesIO(data), capacity)
    table = np.array(ranges, np.int64).reshape(-1, 2)
    assert window.names(table, 2) == (names, 0)
    some = list(names)[::2]
    assert window.names(table, 2, some)[0] == {key: names[key] for key in some}
    if len(ranges):
        table[-1, 1] += 5  # the last entry claims more than the file holds
        assert window.names(table, 2)[1] == 1


def test_a_damaged_name_is_counted_not_kept():
    entry = b"\x08\x01\x12\x04\x12\x7fab"
    window = Window(io.BytesIO(entry), 64)
    assert window.names(np.array([[0, len(entry)]], np.int64), 2) == ({}, 1)
