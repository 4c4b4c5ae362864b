"""Damage that keeps the shape of a format: what its parser lets through reaches the code behind it.

Each gives other bytes, or None where the file is no such thing.
"""

import contextlib
import copy
import io
import json
import pickletools
import random
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

HOSTILE: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64, 10**300, 1e308, -1e308, 1e-320),
    *(float("nan"), float("inf"), float("-inf"), "", "x", "\0", "NaN", "1e999", "-1", "\ud800", "é\u202e", "a" * 5_000),
    *([], {}, [[]], {"": {}}, [None], [1, "a"], {"a": [1] * 300}, [[[[[[1]]]]]]),
)
_WIRE = {0: "varint", 1: "fixed64", 2: "bytes", 5: "fixed32"}
Field = list[Any]  # number, wire type, value
MOST_DEPTH = 6


def in_json(data: bytes, chance: random.Random) -> bytes | None:
    """One to five values of JSON, or of JSON lines, become others, are lost or doubled."""
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        return _in_json_lines(data, chance)
    for _ in range(chance.choice((1, 1, 2, 5))):
        told = _changed(told, chance)
    return json.dumps(told, indent=chance.choice((None, 1))).encode("utf-8", "surrogatepass")


def _in_json_lines(data: bytes, chance: random.Random) -> bytes | None:
    found = data.split(b"\n")
    read = []
    for n, line in enumerate(found):
        with contextlib.suppress(ValueError, RecursionError):
            read.append((n, json.loads(line)))
    for n, told in chance.sample(read, min(len(read), chance.choice((1, 2, 5)))):
        found[n] = json.dumps(_changed(told, chance)).encode("utf-8", "surrogatepass")
    return b"\n".join(found) if read else None


def _changed(told: Any, chance: random.Random) -> Any:
    """The same with another value somewhere."""
    if isinstance(told, dict | list) and told and chance.random() < 0.9:
        key = chance.choice(list(told) if isinstance(told, dict) else range(len(told)))
        match chance.randrange(12):
            case 0:
                del told[key]
            case 1 if isinstance(told, list):
                told.extend(told[key : key + 1] * chance.choice((1, 50)))
            case 2 if isinstance(told, dict):
                told[chance.choice(list(told))] = copy.deepcopy(told[key])
            case 3 if isinstance(told, dict):
                told[chance.choice(("", "x", f"{key}2", "a.b"))] = told.pop(key)
            case _:
                told[key] = _changed(told[key], chance)
        return told
    if isinstance(told, str) and chance.random() < 0.3:
        return (
            told[: len(told) // 2] + chance.choice(("", "\n", "\0", "9" * 30, "-", " " * 999)) + told[len(told) // 2 :]
        )
    if isinstance(told, int | float) and chance.random() < 0.4:
        return chance.choice((-told, told * 10**9, told * 10**18, told + 1, told / 2 if abs(told) < 2**60 else 0.5))
    return copy.deepcopy(chance.choice(HOSTILE))  # or what is changed in it next would be changed for all


def in_protobuf(data: bytes, chance: random.Random) -> bytes | None:
    """Fields of a message, or of one within, with other values; lengths stay right, or one does not."""
    fields = _fields(data)
    if not fields:
        return None
    for _ in range(chance.choice((1, 1, 2, 5))):
        _turn(fields, chance, 0)
    return _encoded(fields)


def _turn(fields: list[Field], chance: random.Random, depth: int) -> None:
    if not fields:
        return
    field = chance.choice(fields)
    inner = _fields(field[2]) if field[1] == 2 and depth < MOST_DEPTH else None
    if inner and chance.random() < 0.85:
        _turn(inner, chance, depth + 1)
        field[2] = _encoded(inner)
        return
    match chance.randrange(8):
        case 0:
            fields.remove(field)
        case 1:
            fields.extend([list(field)] * chance.choice((1, 3, 200)))
        case 2:
            field[0] = chance.choice((1, 2, 3, 4, 15, 16, 2**29 - 1))
        case 3:
            field[1], field[2] = 0, chance.choice((0, 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1))
        case 4:
            field[1], field[2] = 2, chance.choice((b"", b"\0", b"\xff" * 20, b"1e308", "é".encode(), b"x" * 3_000))
        case 5:
            field[1], field[2] = chance.choice(
                ((1, b"\xff" * 8), (5, b"\xff" * 4), (1, b"\0\0\0\0\0\0\xf8\x7f"), (3, b""))
            )
        case 6:
            field[1] = chance.choice((0, 1, 2, 3, 4, 5, 6, 7)) if field[1] == 2 else field[1]
        case _:
            chance.shuffle(fields)


def _fields(data: bytes) -> list[Field] | None:
    """The fields of a message; None for what is none."""
    found, at = [], 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, at = data[at : at + size], at + size
        elif kind == 2:
            size, at = _varint(data, at)
            value, at = data[at : at + max(0, size)], at + max(0, size)
        else:
            return None
        if at < 0 or at > len(data) or key < 8:
            return None
        found.append([key >> 3, kind, value])
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while 0 <= at < len(data) and shift < 64:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 128:
            return value, at
    return 0, -1 << 60


def _encoded(fields: list[Field]) -> bytes:
    out = bytearray()
    for number, kind, value in fields:
        out += _as_varint(number << 3 | kind)
        if kind == 2 and isinstance(value, bytes):
            out += _as_varint(len(value))
        out += _as_varint(value) if isinstance(value, int) else value
    return bytes(out)


def _as_varint(value: int) -> bytes:
    out = bytearray()
    while True:
        out.append(value & 127 | (128 if value > 127 else 0))
        value >>= 7
        if not value:
            return bytes(out)


def in_sqlite(data: bytes, chance: random.Random) -> bytes | None:
    """Cells with other values and types, columns that are called otherwise, tables that lack."""
    if not data.startswith(b"SQLite format 3\0"):
        return None
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        try:
            db.deserialize(data)
            names = [n for (n,) in db.execute("select name from sqlite_master where type = 'table'")]
            for _ in range(chance.choice((1, 2, 4))):
                with contextlib.suppress(sqlite3.Error, OverflowError, UnicodeEncodeError):
                    _altered(db, chance.choice(names), chance)
            db.commit()
            return db.serialize()
        except (sqlite3.Error, IndexError):
            return None


def _altered(db: sqlite3.Connection, table: str, chance: random.Random) -> None:
    columns = [row[1] for row in db.execute(f'pragma table_info("{table}")')]
    column = chance.choice(columns)
    value = chance.choice([v for v in HOSTILE if not isinstance(v, list | dict)] + [b"\xff\0", 1.5, "7", 2**40])
    match chance.randrange(9):
        case 0:
            db.execute(f'drop table "{table}"')
        case 1:
            db.execute(f'alter table "{table}" rename column "{column}" to "{column}_"')
        case 2:
            db.execute(f'delete from "{table}" where rowid % 2')
        case 3:
            db.execute(f'insert into "{table}" select * from "{table}"')
        case 4:
            db.execute(f'alter table "{table}" rename to "{table}_"')
            db.execute(f'create view "{table}" as select * from "{table}_"')
        case _:
            every = chance.choice((1, 1, 2, 3))
            db.execute(f'update "{table}" set "{column}" = ? where rowid % ? = 0', (value, every))


def in_parquet(data: bytes, chance: random.Random) -> bytes | None:
    """A column of another type, with values at the edge, doubled, unnamed or empty."""
    if not data.startswith(b"PAR1"):
        return None
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(io.BytesIO(data))
        n = chance.randrange(table.num_columns)
        name, rows = table.column_names[n], table.num_rows
        odd: list[Any] = [
            pa.array([chance.choice((None, -1, 0, 2**63 - 1, -(2**63)))] * rows, pa.int64()),
            pa.array([chance.choice((1e308, float("nan"), float("inf"), -1.0))] * rows, pa.float64()),
            pa.array([chance.choice(("", "x" * 9_999, "é\u202e", None))] * rows, pa.string()),
            *(pa.array([b"\xff\0"] * rows), pa.array([[1, 2]] * rows), pa.array([{"a": 1}] * rows), pa.nulls(rows)),
            *(
                pa.array([True] * rows),
                pa.array([2**40] * rows, pa.timestamp("us")),
                pa.array([1] * rows, pa.duration("s")),
            ),
        ]
        made = table.set_column(n, chance.choice((name, name, name, "", name + "2")), chance.choice(odd))
        if chance.random() < 0.2:
            made = pa.concat_tables([made] * chance.choice((0, 2, 100)) or [made.slice(0, 0)])
        out = io.BytesIO()
        pq.write_table(made, out, compression=chance.choice(("zstd", "snappy", "gzip", "none")))
        return out.getvalue()
    except (pa.ArrowException, OSError, IndexError, ValueError):
        return None


def in_pickle(data: bytes, chance: random.Random) -> bytes | None:
    """An opcode lost, doubled, put elsewhere, or another in its place."""
    if data[:1] not in (b"\x80", b"(", b"]", b"}"):
        return None
    try:
        starts = [at for _, _, at in pickletools.genops(data) if at is not None]
    except (ValueError, IndexError, KeyError):
        return None
    ops = [data[a:b] for a, b in zip(starts, [*starts[1:], len(data)], strict=True)]
    for _ in range(chance.choice((1, 1, 2, 6))):
        at = chance.randrange(len(ops))
        match chance.randrange(5):
            case 0 if len(ops) > 1:
                del ops[at]
            case 1:
                ops[at:at] = [ops[at]] * chance.choice((1, 3, 500))
            case 2:
                ops.insert(chance.randrange(len(ops)), ops[at])
            case _:
                ops[at] = chance.choice(_ODD_OPS)
    return b"".join(ops)


_ODD_OPS = (
    *(b"0", b"1", b"2", b"(", b".", b")", b"]", b"}", b"a", b"e", b"s", b"u", b"t", b"\x85", b"\x94", b"\x8f", b"\x90"),
    *(
        b"\x91",
        b"N",
        b"\x88",
        b"K\xff",
        b"J\xff\xff\xff\xff",
        b"M\xff\xff",
        b"\x8a\xff" + b"\xff" * 255,
        b"G\x7f\xf8" + b"\0" * 6,
    ),
    *(
        b"h\0",
        b"h\xff",
        b"j\xff\xff\xff\x7f",
        b"q\xff",
        b"r\xff\xff\xff\xff",
        b"I9" + b"9" * 99 + b"\n",
        b"L1L\n",
        b"Fnan\n",
    ),
    *(b"X\xff\xff\xff\x7f", b"\x8d" + b"\xff" * 8, b"B\xff\xff\xff\xff", b"\x8e" + b"\xff" * 8, b"\x95" + b"\xff" * 8),
    *(
        b"cos\nsystem\n",
        b"R",
        b"b",
        b"\x81",
        b"\x93",
        b"o",
        b"i os\nsystem\n",
        b"\x82\x01",
        b"P0\n",
        b"Q",
        b"\x97",
        b"\x98",
    ),
)
Shaped = Callable[[bytes, random.Random], bytes | None]
SHAPES: Sequence[Shaped] = (in_sqlite, in_parquet, in_pickle, in_json, in_protobuf)


def reshaped(data: bytes, chance: random.Random) -> tuple[bytes, str] | None:
    """(other bytes of the same format, which format); None where nothing here knows it."""
    for shape in SHAPES:
        if (found := shape(data, chance)) is not None:
            return found, shape.__name__
    return None
