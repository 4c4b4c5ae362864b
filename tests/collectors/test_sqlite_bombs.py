"""Databases whose pages stand in a tree many times: small files that SQLite itself would walk without end."""

import sqlite3
import struct
import time
import tracemalloc

import pytest

from collectors.base import Source
from collectors.reading.sqlite import Database
from errors import InputError

PAGE = 512


def varint(value: int) -> bytes:
    out = [value & 127]
    while value := value >> 7:
        out.append(value & 127 | 128)
    return bytes(reversed(out))


def page(kind: int, cells: list[bytes], last: int | None = None, at: int = 0) -> bytes:
    """A page of a table's tree; `last`: the page behind all cells of one that has pages below it."""
    made, end, places = bytearray(PAGE), PAGE, b""
    for cell in cells:
        end -= len(cell)
        made[end : end + len(cell)] = cell
        places += struct.pack(">H", end)
    head = struct.pack(">BHHHB", kind, 0, len(cells), end, 0) + (b"" if last is None else struct.pack(">I", last))
    made[at : at + len(head) + len(places)] = head + places
    assert at + len(head) + len(places) <= end
    return bytes(made)


def below(pages: list[int], at: int = 0) -> bytes:
    return page(5, [struct.pack(">I", p) + varint(5) for p in pages[:-1]], pages[-1], at)


def cells(raw: bytes, number: int) -> list[bytes]:
    """The cells of a leaf without pages for what does not fit."""
    start, head = (number - 1) * PAGE, 100 if number == 1 else 0
    leaf = raw[start : start + PAGE]
    (count,) = struct.unpack_from(">H", leaf, head + 3)
    found = []
    for (at,) in struct.iter_unpack(">H", leaf[head + 8 : head + 8 + 2 * count]):
        size, begin = leaf[at], at + 2  # lengths and row numbers of one byte
        if size > 127:
            size, begin = (size & 127) << 7 | leaf[at + 1], at + 3
        found.append(leaf[at : begin + size])
    return found


def written(path, *statements: str) -> bytearray:
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA page_size={PAGE}")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return bytearray(path.read_bytes())


def rewritten(path, raw: bytearray, *more: bytes) -> None:
    raw += b"".join(more)
    raw[28:32] = struct.pack(">I", len(raw) // PAGE)
    path.write_bytes(raw)


def test_a_list_of_tables_without_end_is_refused(tmp_path):
    path = tmp_path / "a.sqlite"
    raw = written(path, "CREATE TABLE t(a UNIQUE)")
    found, new = cells(bytes(raw), 1), len(raw) // PAGE + 1
    tables = [c for c in found if b"autoindex" not in c]
    again = [c for c in found if b"autoindex" in c]
    assert len(tables) == len(again) == 1
    raw[100:PAGE] = below([new, *[new + 4] * 40], 100)[100:]  # 40 * 50 * 50 * 50 * 5 entries
    several = [below([new + depth] * 50) for depth in (1, 2, 3)]
    rewritten(path, raw, page(13, tables), page(13, again * 5), *several)
    began = time.monotonic()
    with pytest.raises(InputError, match=r"cannot be read \(interrupted\)"), Database(Source(path, "a.sqlite")):
        pass
    assert time.monotonic() - began < 20


def test_texts_that_share_their_pages_are_no_longer_than_the_file(tmp_path):
    """A thousand texts of 0.9 MB in a file of 1.4 MB."""
    path = tmp_path / "a.sqlite"
    raw = written(path, "CREATE TABLE t(id INTEGER, value TEXT)", f"INSERT INTO t VALUES (7, '{'x' * 900_000}')")
    root, new = 2, len(raw) // PAGE + 1
    leaf = bytes(raw[PAGE : 2 * PAGE])
    (at,) = struct.unpack_from(">H", leaf, 8)
    raw[PAGE : 2 * PAGE] = below([new + 1] * 20)
    rewritten(path, raw, page(13, [leaf[at:]]), below([new] * 50))
    tracemalloc.start()
    with Database(Source(path, "a.sqlite")) as database:
        assert database.columns == {"t": ("id", "value")} and root == 2
        rows = sum(1 for _ in database.rows("t", ("id", "value")))
        numbers = sum(len(part["value"]) for part in database.numbers("t", ("value",)))
        assert (rows, numbers) == (0, 0)  # not one piece of 64 fits; a text of 0.9 MB is no number
        assert [lost.reason for lost in database.lost] == [
            "it cannot be read: its texts are longer than the file",
            "it cannot be read: string or blob too big",
        ]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6


def test_ordinary_texts_and_numbers_come_in_pieces(tmp_path):
    path = tmp_path / "a.sqlite"
    values = ",".join(f"({i}, 'name {i}')" for i in range(1000))
    written(path, "CREATE TABLE t(id INTEGER PRIMARY KEY, value TEXT)", f"INSERT INTO t VALUES {values}")
    with Database(Source(path, "a.sqlite")) as database:
        numbers = database.numbers("t", ("id",))
        assert len(next(numbers)["id"]) == 1000
        assert database.text("t", 999, "value") == "name 999"
        assert [*database.rows("t", ("id", "value"))] == [(i, f"name {i}") for i in range(1000)]
        assert not database.lost
