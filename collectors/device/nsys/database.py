"""A SQLite file of somebody else's making, read without running anything that it holds.

It is opened read-only and as one that nobody changes; only columns that are stored in real tables can be read. Views,
virtual tables, generated columns, functions and pragmas are out of reach once it is open, whatever the file says.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np

from collectors.base import Lost, Source
from errors import InputError

ROWS = 1 << 16
NULL = np.iinfo(np.int64).min  # in place of what a row does not tell
LONGEST = 1 << 20  # bytes of a value; a longer one cannot be read
_LEAST_ROW = 4  # bytes that a row takes: a file with more rows than fit has pages that stand in it more than once
_ROW = ("", "ROWID")  # of no column: what is only counted, or found by its number


class Database:
    """The tables of one file. `columns`: of each table those that are stored, by name."""

    def __init__(self, source: Source):
        self._source = source
        self._folder: tempfile.TemporaryDirectory | None = None
        self.columns: Mapping[str, tuple[str, ...]] = {}
        self.keyed: Mapping[str, str] = {}  # of each table with one: the column that is its row's number
        self.lost: list[Lost] = []

    def __enter__(self) -> Self:
        try:
            path = self._path()
            self._bytes = path.stat().st_size
            self._connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
            self._connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
            self._whole(path)
            self._look()
        except sqlite3.Error as error:
            self.close()
            raise self.unreadable(error) from error
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if connection := getattr(self, "_connection", None):
            connection.close()
        if self._folder is not None:
            self._folder.cleanup()

    def unreadable(self, error: Exception) -> InputError:
        return InputError(
            f"a SQLite file that cannot be read ({str(error)[:200]})",
            where=self._source.name,
            expected="a whole export of Nsight Systems",
            advice="Export it again with `nsys export --type sqlite`; copying it while it was written cuts it short",
        )

    def _path(self) -> Path:
        """The file itself, or what was packed in it."""
        if not self._source.gzipped:
            return self._source.content.resolve()
        self._folder = tempfile.TemporaryDirectory(prefix="chipledger-")
        path = Path(self._folder.name) / "export.sqlite"
        with self._source.binary() as packed, path.open("wb") as f:
            shutil.copyfileobj(packed, f, 1 << 22)
        return path

    def _whole(self, path: Path) -> None:
        """Notes where the file is shorter than its own header says."""
        with path.open("rb") as f:
            head = f.read(100)
        page = int.from_bytes(head[16:18], "big")
        pages = int.from_bytes(head[28:32], "big") if head[24:28] == head[92:96] else 0
        lacks = pages * (65_536 if page == 1 else page) - self._bytes
        if lacks > 0:
            self.lost.append(Lost("the end of the file", f"it is cut short: {lacks:,} bytes are missing", self._bytes))

    def _look(self) -> None:
        """Learns the tables, then gives up all that only this needed."""
        connection = self._connection
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA cell_size_check=ON")
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0").fetchall()
        columns, keyed = {}, {}
        for (name,) in names[:10_000]:
            told = connection.execute(f"PRAGMA table_xinfo({quoted(name)})").fetchall()
            columns[name] = tuple(column for _, column, *_, hidden in told if hidden == 0)
            keys = [column for _, column, kind, _, _, key, _ in told if key and str(kind).upper() == "INTEGER"]
            if len(keys) == 1 == sum(bool(row[5]) for row in told):
                keyed[name] = keys[0]
        self.columns, self.keyed = columns, keyed
        connection.set_authorizer(self._may)

    def _may(self, action: int, table: str | None, column: str | None, *_: object) -> int:
        stored = self.columns.get(table or "")
        read = action == sqlite3.SQLITE_READ and stored is not None and column in (*stored, *_ROW)
        return sqlite3.SQLITE_OK if read or action == sqlite3.SQLITE_SELECT else sqlite3.SQLITE_DENY

    def has(self, table: str, *columns: str) -> bool:
        """Whether a table is there, with these columns."""
        return table in self.columns and set(columns) <= set(self.columns[table])

    def numbers(self, table: str, columns: Sequence[str]) -> Iterator[dict[str, np.ndarray]]:
        """Whole numbers of a table in the order of the file, ROWS at a time; a column that it lacks is NULL throughout.

        What cannot be read of a damaged table is told in `lost`.
        """
        there = [c for c in columns if c in self.columns.get(table, ())]
        if not there:
            return
        chosen = ", ".join(f"CAST({quoted(c)} AS INTEGER)" for c in there)
        for rows in self._fetched(f"SELECT {chosen} FROM {quoted(table)}", table):
            read = dict(zip(there, _whole(rows), strict=True))
            yield {c: read[c] if c in read else np.full(len(rows), NULL) for c in columns}

    def rows(self, table: str, columns: Sequence[str], most: int = 1 << 20) -> Iterator[tuple]:
        """Rows as they stand, at most so many; a column that the table lacks is None throughout."""
        there = [c for c in columns if c in self.columns.get(table, ())]
        if not there:
            return
        chosen, left = ", ".join(quoted(c) for c in there), most
        for rows in self._fetched(f"SELECT {chosen} FROM {quoted(table)} LIMIT {most}", table):
            if len(there) == len(columns):
                yield from rows[:left]
            else:
                places = [there.index(c) if c in there else -1 for c in columns]
                yield from (tuple(None if p < 0 else row[p] for p in places) for row in rows[:left])
            left -= len(rows)

    def text(self, table: str, key: int, column: str) -> str | None:
        """The text in the row of this number."""
        told = self._connection.execute(
            f"SELECT {quoted(column)} FROM {quoted(table)} WHERE {quoted(self.keyed[table])} = ?", (int(key),)
        ).fetchone()
        return told[0] if told and isinstance(told[0], str) else None

    def _fetched(self, query: str, table: str) -> Iterator[list[tuple]]:
        left = self._bytes // _LEAST_ROW
        try:
            cursor = self._connection.execute(query)
            while rows := cursor.fetchmany(ROWS):
                if (left := left - len(rows)) < 0:
                    raise sqlite3.DatabaseError("it holds more rows than fit in the file")
                yield rows
        except (sqlite3.Error, UnicodeError) as error:
            self.lost.append(Lost(f"the rest of the table {table[:80]}", f"it cannot be read: {str(error)[:200]}"))


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _whole(rows: list[tuple]) -> list[np.ndarray]:
    """Columns of rows of whole numbers, None as NULL."""
    try:
        return list(np.array(rows, dtype=np.int64).T)
    except (TypeError, ValueError, OverflowError):
        return [
            np.fromiter((NULL if v is None else v for v in column), np.int64, len(rows))
            for column in zip(*rows, strict=True)
        ]
