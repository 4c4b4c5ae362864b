"""A SQLite file of somebody else's making, read without running anything that it holds.

It is opened read-only and as one that nobody changes; only columns that are stored in real tables can be read. Views,
virtual tables, generated columns, functions and pragmas are out of reach once it is open, whatever the file says.
"""

import itertools
import shutil
import sqlite3
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, Self

import numpy as np

from collectors.base import Lost, Source
from errors import InputError

MAGIC = b"SQLite format 3\x00"  # how every file of SQLite begins
ROWS = 1 << 16
NULL = np.iinfo(np.int64).min  # in place of what a row does not tell
LONGEST = 1 << 20  # bytes of a value; a longer one cannot be read
_LONGEST_NUMBER = 1000  # bytes of a value that is read as a number
_TEXT_ROWS = 64  # of up to LONGEST bytes a value, that are held at a time
_MOST_TABLES, _NAMES_BYTES = 10_000, 1 << 24  # whose names are learned
_STEP, _MOST_STEPS = 10_000, 10_000_000  # of SQLite's machine while it learns the tables: 10,000 tables take a tenth
_LEAST_ROW = 4  # bytes that a row takes: a file with more rows than fit has pages that stand in it more than once
_KNOWN_BYTES, _ENTRY_BYTES = 1 << 26, 100  # of texts that are remembered, and what each takes beside itself
_ALL_BYTES = 1 << 28  # of all texts of such a table
_FILES = 16  # whose names of tables are remembered
_TEXTS = 1 << 20  # that are held of a table whose texts cannot be looked up one by one
# A whole number of a column of whatever type: numbers sort before texts, of which those that write a number are one.
_WHOLE = "CASE WHEN {0} < '' OR CAST(CAST({0} AS INTEGER) AS TEXT) = {0} THEN CAST({0} AS INTEGER) END"
_ROW = ("", "ROWID")  # of no column: what is only counted, or found by its number


class Database:
    """The tables of one file. `columns`: of each table those that are stored, by name."""

    def __init__(self, source: Source, expected: str = "a whole database of SQLite", advice: str = "Copy it again"):
        """`expected` and `advice`: what a file that cannot be read should have been, and how one is got."""
        self._source, self._expected, self._advice = source, expected, advice
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
        except (sqlite3.Error, UnicodeError) as error:  # SQLite quotes a damaged file's bytes, which may be no text
            self.close()
            raise self.unreadable(error) from error
        except BaseException:  # a packed file that is damaged: what was unpacked of it goes
            self.close()
            raise
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
            expected=self._expected,
            advice=f"{self._advice}; copying it while it was written cuts it short",
        )

    def _path(self) -> Path:
        """The file itself, or what was packed in it."""
        if not self._source.gzipped:
            return self._source.content.resolve()
        self._folder = tempfile.TemporaryDirectory(prefix="chipledger-")
        path = Path(self._folder.name) / "unpacked.sqlite"
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
        log = path.with_name(f"{path.name}-wal")
        if log.exists() and log.stat().st_size:
            why = "they lie in the file beside it whose name ends in -wal: end what writes to it, and copy it again"
            self.lost.append(Lost("what was written last", why))
        if lacks > 0:
            self.lost.append(Lost("the end of the file", f"it is cut short: {lacks:,} bytes are missing", self._bytes))

    def _look(self) -> None:
        """Learns the tables, then gives up all that only this needed."""
        connection = self._connection
        steps = itertools.count(_STEP, _STEP)  # pages that stand in a tree again and again make a schema without end
        connection.set_progress_handler(lambda: next(steps) > _MOST_STEPS, _STEP)
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA cell_size_check=ON")
        columns, keyed = {}, {}
        for name in self._names():
            told = connection.execute(f"PRAGMA table_xinfo({quoted(name)})").fetchall()
            columns[name] = tuple(column for _, column, *_, hidden in told if hidden == 0)
            keys = [column for _, column, kind, _, _, key, _ in told if key and str(kind).upper() == "INTEGER"]
            if len(keys) == 1 == sum(bool(row[5]) for row in told):
                keyed[name] = keys[0]
        self.columns, self.keyed = columns, keyed
        connection.set_progress_handler(None, 0)
        connection.set_authorizer(self._may)

    def _names(self) -> list[str]:
        """Names of the tables, each once."""
        found: dict[str, None] = {}
        room = _NAMES_BYTES
        for (name,) in self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"):
            if not isinstance(name, str) or name in found:
                continue
            if len(found) >= _MOST_TABLES or (room := room - len(name)) < 0:
                break
            found[name] = None
        return [*found]

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
        chosen = ", ".join(_WHOLE.format(quoted(c)) for c in there)
        for rows in self._fetched(f"SELECT {chosen} FROM {quoted(table)}", table):
            read = dict(zip(there, _whole(rows), strict=True))
            yield {c: read[c] if c in read else np.full(len(rows), NULL) for c in columns}

    def rows(
        self, table: str, columns: Sequence[str], most: int = 1 << 20, where: tuple[str, str] | None = None
    ) -> Iterator[tuple]:
        """Rows as they stand, at most so many; a column that the table lacks is None throughout. `where`: only those
        that hold this text in this column, of which there are none where it is lacking."""
        there = [c for c in columns if c in self.columns.get(table, ())]
        if not there or (where is not None and not self.has(table, where[0])):
            return
        chosen, left = ", ".join(quoted(c) for c in there), most
        only = f" WHERE {quoted(where[0])} = ?" if where else ""
        given = where[1:] if where else ()
        for rows in self._texts(f"SELECT {chosen} FROM {quoted(table)}{only} LIMIT {most}", table, given):
            if len(there) == len(columns):
                yield from rows[:left]
            else:
                places = [there.index(c) if c in there else -1 for c in columns]
                yield from (tuple(None if p < 0 else row[p] for p in places) for row in rows[:left])
            left -= len(rows)

    def text(self, table: str, key: int, column: str) -> str | None:
        """The text in the row of this number; None where it holds none, or cannot be read, which is told in `lost`."""
        try:
            told = self._connection.execute(
                f"SELECT {quoted(column)} FROM {quoted(table)} WHERE {quoted(self.keyed[table])} = ?", (int(key),)
            ).fetchone()
        except (sqlite3.Error, UnicodeError) as error:
            self._unreadable_part(f"texts of the table {table[:80]}", error)
            return None
        return told[0] if told and isinstance(told[0], str) else None

    def count(self, table: str) -> int:
        """How many rows a table has, as far as they can be walked: SQLite's own count would walk without a bound."""
        return sum(map(len, self._fetched(f"SELECT 1 FROM {quoted(table)}", table))) if table in self.columns else 0

    def _unreadable_part(self, what: str, error: Exception) -> None:
        lost = Lost(what, f"it cannot be read: {str(error)[:200]}")
        if lost not in self.lost:
            self.lost.append(lost)

    def _texts(self, query: str, table: str, given: tuple[str, ...] = ()) -> Iterator[list[tuple]]:
        """Rows with texts. Those of a whole file are no longer than it: pages that stand in many texts make them so."""
        left = self._bytes
        try:
            for rows in self._walked(query, _TEXT_ROWS, LONGEST, given):
                left -= sum(len(value) for row in rows for value in row if isinstance(value, str | bytes))
                if left < 0:
                    raise sqlite3.DatabaseError("its texts are longer than the file")
                yield rows
        except (sqlite3.Error, UnicodeError) as error:
            self._unreadable_part(f"the rest of the table {table[:80]}", error)

    def _fetched(self, query: str, table: str) -> Iterator[list[tuple]]:
        """Rows of numbers."""
        try:
            yield from self._walked(query, ROWS, _LONGEST_NUMBER)
        except (sqlite3.Error, UnicodeError) as error:
            self._unreadable_part(f"the rest of the table {table[:80]}", error)

    def _walked(self, query: str, count: int, longest: int, given: tuple[str, ...] = ()) -> Iterator[list[tuple]]:
        """Rows, so many at a time. `longest`: bytes of a value. Raises what SQLite does."""
        left, connection = self._bytes // _LEAST_ROW, self._connection
        cursor, rows = connection.cursor(), None
        while rows is None or rows:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, longest)
            try:
                cursor = cursor.execute(query, given) if rows is None else cursor
                rows = cursor.fetchmany(count)
            finally:  # between two pieces other values may be asked for
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
            if (left := left - len(rows)) < 0:
                raise sqlite3.DatabaseError("it holds more rows than fit in the file")
            if rows:
                yield rows


def tells_of(source: Source, tables: Sequence[bytes]) -> bool:
    """Whether a file is a database with a table whose name begins so. It stands in the first bytes of most; of others
    the names are read, since they lie wherever the file had room."""
    if not source.head.startswith(MAGIC):
        return False
    if any(name in source.head for name in tables):
        return True
    try:
        told = source.path.stat()
        there = _table_names(source, (source.path, told.st_size, told.st_mtime_ns))
    except (OSError, EOFError, zlib.error, InputError):
        return False
    return any(name.startswith(begin.decode()) for name in there for begin in tables)


_names_known: dict[tuple[Path, int, int], frozenset[str]] = {}


def _table_names(source: Source, state: tuple[Path, int, int]) -> frozenset[str]:
    """Names of the tables; those of the last files are remembered, since several formats ask."""
    if state not in _names_known:
        while len(_names_known) >= _FILES:
            _names_known.pop(next(iter(_names_known)), None)
        _names_known[state] = frozenset()  # of a file that cannot be read
        with Database(source) as database:
            _names_known[state] = frozenset(database.columns)
    return _names_known.get(state, frozenset())


class Lookable(Protocol):
    """Tables, as `Strings` needs them."""

    @property
    def keyed(self) -> Mapping[str, str]: ...

    @property
    def lost(self) -> list[Lost]: ...

    def has(self, table: str, *columns: str) -> bool: ...

    def rows(self, table: str, columns: Sequence[str], most: int = ...) -> Iterator[tuple]: ...

    def text(self, table: str, key: int, column: str) -> str | None: ...


class Strings:
    """Texts of a table by their numbers: each looked up when it is asked for, or all at once where the table has no key
    to look them up by."""

    def __init__(self, database: "Lookable", table: str, key: str, column: str):
        self._database, self._table, self._key, self._column = database, table, key, column
        self._one_by_one = database.keyed.get(table) == key and database.has(table, column)
        self._all: dict[int, str] | None = None
        self._known: dict[int, str | None] = {}
        self._room = _KNOWN_BYTES

    def of(self, key: int) -> str | None:
        """The text of a number; None where there is none."""
        if key in self._known:
            return self._known[key]
        if self._one_by_one:
            text = self._database.text(self._table, key, self._column)
            if self._room > 0:
                self._known[key] = text
                self._room -= len(text or "") + _ENTRY_BYTES
            return text
        if self._all is None:
            self._all = self._held()
        return self._all.get(key)

    def _held(self) -> dict[int, str]:
        """All texts, as far as there is room for them."""
        found: dict[int, str] = {}
        room = _ALL_BYTES
        for key, text in self._database.rows(self._table, (self._key, self._column), _TEXTS):
            if isinstance(key, int) and isinstance(text, str) and (room := room - len(text) - _ENTRY_BYTES) > 0:
                found[key] = text
        if room <= 0 or len(found) >= _TEXTS:
            why = f"of a table without a key, {_TEXTS:,} and {_ALL_BYTES >> 20:,} MiB at most are held"
            self._database.lost.append(Lost(f"further texts of the table {self._table[:80]}", why))
        return found


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
