# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyarrow's stubs leave some types open
"""Reading a run's tables: what analyzers are given, whether the rows lie in Parquet files or in memory."""

import contextlib
import functools
from collections.abc import Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from errors import InputError, QuestionError
from runs.columns import nulls
from runs.derived import Derived
from runs.held_columns import MOST_ROWS, HeldColumns
from runs.integrity import TABLES, Files, touched
from runs.matching import Where, matching
from runs.parts import Part, one_file, parts_of
from runs.schema import SCHEMAS

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow.compute as pc

Stretch = tuple[str, tuple[int, int] | None]  # a file of a table, and from which to which group of its rows; None: all
FEW_ROWS = 20_000  # are read by one thread: to hand them to others and to wait for those takes longer
VERY_FEW_ROWS = 2_000  # are read with all columns: to open a file takes longer
_columns = HeldColumns()


class Tables(Protocol):
    """The tables of one run. A table that the run lacks reads as empty, with its columns."""

    def rows(self, name: str) -> int:
        """How many rows the run holds of this table; 0 where it has none."""
        ...

    def arrow(self, name: str, columns: Sequence[str] | None = None, where: Where | None = None) -> pa.Table:
        """The rows as an Arrow table. `where`: (column, operator, value) triples, all of which must hold."""
        ...


def state_of(tables: Tables) -> Hashable | None:
    """What tells tables from others, and from themselves once a file was touched; None where nothing does."""
    return getattr(tables, "state", None)


def frame(
    tables: Tables, name: str, columns: Sequence[str] | None = None, where: Where | None = None
) -> "pd.DataFrame":
    """The rows as a pandas frame: nullable integers keep every bit of a nanosecond, text is categorical."""
    table = tables.arrow(name, columns, where)
    return _to_pandas(table) if table.num_rows else _without_rows(table.schema).copy(deep=False)


def _to_pandas(table: pa.Table) -> "pd.DataFrame":
    return table.to_pandas(types_mapper=_pandas_types().get, use_threads=table.num_rows > FEW_ROWS)


@functools.lru_cache(512)
def _without_rows(schema: pa.Schema) -> "pd.DataFrame":
    """What is made of a table that a run lacks, as most runs do of most tables. Pandas writes into no frame that shares
    its columns with another."""
    return _to_pandas(schema.empty_table())


@functools.cache
def _pandas_types() -> "dict[pa.DataType, pd.api.extensions.ExtensionDtype]":
    """As what pandas keeps each type of Arrow's. Text of its own making is in arrays of Python's: above all the names
    of columns, which it looks up at every turn and would each time convert from Arrow. What the rows of a table say
    stays in Arrow's."""
    import pandas as pd  # a fifth of a second that ingest, which needs none, should not pay

    pd.options.mode.string_storage = "python"
    return {
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.float64(): pd.Float64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
        pa.string(): pd.StringDtype("pyarrow", na_value=np.nan),
    }


def batches(tables: Tables, name: str, columns: Sequence[str], rows: int) -> Iterator[pa.Table]:
    """The rows in their order, about so many at a time: a table that is larger than memory is read through."""
    if isinstance(tables, ParquetTables):
        yield from tables.batches(name, columns, rows)
        return
    whole = tables.arrow(name, columns)
    yield from (whole.slice(at, rows) for at in range(0, whole.num_rows, rows))


def int_column(table: pa.Table, name: str, missing: int = -1) -> np.ndarray:
    """A whole-number column as int64, nulls as `missing`, without a detour through floats."""
    whole = table[name].combine_chunks()
    told = whole.fill_null(missing) if whole.null_count else whole
    return told.to_numpy(zero_copy_only=False).astype(np.int64)


def filter_of(where: Where) -> "pc.Expression":
    """The conditions, all of which must hold, as Arrow takes them."""
    triples: list[Any] = [tuple(w) for w in where]
    return pq.filters_to_expression(triples)


def _schema(name: str, columns: Sequence[str] | None) -> pa.Schema:
    if name not in SCHEMAS:
        raise QuestionError(f"no table {name!r}", expected=f"one of {', '.join(SCHEMAS)}")
    schema = SCHEMAS[name].arrow
    return schema if columns is None else pa.schema([schema.field(c) for c in columns])


class ParquetTables:
    """Tables as Parquet files of a run: `tables/<name>.parquet`, or parts of it (`runs/parts.py`). A table that the run
    never had reads as empty; a file that is missing or was changed is an InputError that names it.

    `counts`: rows by table, as the run was written; those of a table in parts are not counted anew.
    """

    def __init__(self, files: Files, counts: Mapping[str, int] | None = None):
        self._files, self._counts = files, counts or {}
        self._parts: dict[str, list[Part]] = {}
        self._of_capture: dict[tuple[str, int], list[str]] = {}

    @property
    def state(self) -> tuple[Hashable, ...]:
        """What tells these tables from others, and from themselves once a file of theirs was touched."""
        return self._files.state(TABLES)

    def path(self, name: str) -> Path:
        """Where the file of a table lies that is one file."""
        return self._files.folder / one_file(name)

    def files(self, name: str, where: Where | None = None) -> list[str]:
        """As `named`, and each is whole."""
        found = self.named(name, where)
        for relative in found:
            self._files.whole(relative)
        return found

    def named(self, name: str, where: Where | None = None) -> list[str]:
        """The files of a table, below the run's folder, in the order of its rows: those that may hold rows for which
        `where` is true. Empty where the run never had the table, or no part may hold such rows."""
        if one_file(name) in self._files.marks:
            return [one_file(name)]
        if name not in self._parts:
            self._parts[name] = parts_of(self._files.marks, name)
        parts = self._parts[name]
        one = next((w[2] for w in where or () if w[0] == "capture" and w[1] == "=="), None)
        if not isinstance(one, int):
            return [part.relative for part in parts if part.may_hold(where or ())]
        if (name, one) not in self._of_capture:  # asked again for each device and line
            only = [("capture", "==", one)]
            self._of_capture[name, one] = [part.relative for part in parts if part.may_hold(only)]
        return self._of_capture[name, one]

    def columns(self, name: str) -> set[str] | None:
        """The columns in the table's own files; None where the run never had one. The first file is whole."""
        for relative in self.named(name):
            with self._held(relative) as path:
                return set(pq.read_schema(path).names)
        return None

    def rows(self, name: str) -> int:
        found = self.named(name)
        if found and found != [one_file(name)] and name in self._counts:
            return self._counts[name]
        return sum(sum(self.groups(relative)) for relative in found)

    def groups(self, relative: str) -> list[int]:
        """How many rows each group of rows in a file of a table has."""
        with self._held(relative) as path:
            told = pq.read_metadata(path)
            return [told.row_group(n).num_rows for n in range(told.num_row_groups)]

    def arrow(self, name: str, columns: Sequence[str] | None = None, where: Where | None = None) -> pa.Table:
        schema, found = _schema(name, columns), self.named(name, where)
        if not found:
            return schema.empty_table()
        if found == [one_file(name)] and self._counts.get(name, MOST_ROWS) < MOST_ROWS:
            return self._held_rows(name, schema, where or ())
        filters = None if where is None else filter_of(where)
        read: list[pa.Table] = []
        for relative in found:
            with self._held(relative) as path:
                read.append(_in_schema(_read(path, schema.names, filters), schema))
        if len(read) < 2:
            return read[0]
        return pa.concat_tables(read).unify_dictionaries()

    def _held_rows(self, name: str, schema: pa.Schema, where: Where) -> pa.Table:
        """Rows of a table that is one file, of which columns are held. One of few rows is read as a whole: its columns
        are asked for a few at a time."""
        conditions = list(dict.fromkeys([*schema.names, *(column for column, _, _ in where)]))
        every = _schema(name, None)

        def read(names: list[str]) -> pa.Table:
            names = every.names if self._counts[name] <= VERY_FEW_ROWS else names
            return _in_schema(_read(path, names, None), _schema(name, names))

        with self._held(one_file(name)) as path:
            rows = _columns.of((str(path), touched(path)), conditions, read)
            return matching(rows, where).select(schema.names)

    def first(self, name: str, rows: int) -> pa.Table:
        """At most so many rows of the table's beginning, as `arrow` gives them all."""
        return next(self._pieces(name, None, rows), _schema(name, None).empty_table())

    def batches(
        self, name: str, columns: Sequence[str], rows: int, of: Sequence[Stretch] | None = None
    ) -> Iterator[pa.Table]:
        """The rows in their order, at most so many at a time. `of`: of which files; None: of all."""
        return self._pieces(name, columns, rows, of)

    def _pieces(
        self, name: str, columns: Sequence[str] | None, rows: int, of: Sequence[Stretch] | None = None
    ) -> Iterator[pa.Table]:
        schema = _schema(name, columns)
        for relative, groups in [(relative, None) for relative in self.named(name)] if of is None else of:
            with self._held(relative) as path, pq.ParquetFile(path) as file:
                there = [n for n in schema.names if n in file.schema_arrow.names]
                for batch in file.iter_batches(rows, groups and list(range(*groups)), there):
                    yield _in_schema(pa.Table.from_batches([batch]), schema)

    def bytes_of(self, relative: str) -> int:
        """How long a file of a table is; 0 where nobody noted it."""
        known = self._files.marks[relative]
        return known.bytes if known else 0

    def told(self, relatives: Iterable[str]) -> dict[str, Any]:
        """These files of the tables as plain values, of which `runs/told.py` makes tables in another process."""
        known = {relative: self._files.marks[relative] for relative in relatives}
        marks = {relative: mark and [mark.bytes, mark.crc32] for relative, mark in known.items()}
        return {"folder": str(self._files.folder), "marks": marks, "place": self._files.place()}

    def gone(self) -> InputError | None:
        """What became of the run since its manifest was read; None where it is still the same."""
        return self._files.gone()

    @property
    def in_a_folder(self) -> bool:
        """Whether they lie where their path says, and not in a bucket."""
        return not self._files.place()

    @property
    def derived(self) -> Derived | None:
        """What is kept of the run beside its tables; None where it lies in no store."""
        folder = self._files.folder
        return Derived(folder.parents[1], folder.name) if folder.parent.name == "runs" else None

    @contextlib.contextmanager
    def _held(self, relative: str) -> Generator[Path]:
        """A file of the run, which is whole and stays. What Parquet says of a damaged one that no checksum is known of
        becomes an InputError that names it."""
        with self._files.held(relative) as path, self._reading(relative):
            yield path or self._files.folder / relative

    @contextlib.contextmanager
    def _reading(self, relative: str) -> Generator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError) as e:
            reason = " ".join(f"{type(e).__name__}: {e}".split())[:200]
            raise self._files.error(relative, f"cannot be read ({reason})") from e


def _read(path: Path, names: Sequence[str], filters: "pc.Expression | None") -> pa.Table:
    """Those of the columns that are in the file. What passes over rows is slower to begin with, so that only what has
    something to pass over asks for it."""
    with pq.ParquetFile(path) as file:
        there = set(file.schema_arrow.names)
        columns = [n for n in names if n in there]
        if filters is None:
            return file.read(columns, use_threads=file.metadata.num_rows > FEW_ROWS)
    return pq.read_table(path, columns=columns, filters=filters)


def _in_schema(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """With every column of the schema: one of a run written before that column was thought of reads as null."""
    there = set(table.column_names)
    whole = [table[f.name] if f.name in there else nulls(table.num_rows, f.type) for f in schema]
    return pa.table(whole, names=schema.names).cast(schema)


class MemoryTables:
    """Tables given as columns: `MemoryTables({"steps": {"step": [0, 1], "start_ns": [5, 9]}})`.

    `state` tells them from all others; they never change.
    """

    def __init__(self, tables: Mapping[str, Mapping[str, Any]]):
        self.state: tuple[Hashable, ...] = (object(),)
        self._tables = {
            name: pa.Table.from_batches([SCHEMAS[name].batch(dict(columns))]) for name, columns in tables.items()
        }

    def rows(self, name: str) -> int:
        return self._tables[name].num_rows if name in self._tables else 0

    def arrow(self, name: str, columns: Sequence[str] | None = None, where: Where | None = None) -> pa.Table:
        schema = _schema(name, columns)
        if name not in self._tables:
            return schema.empty_table()
        table = self._tables[name]
        if where is not None:
            table = matching(table, where)
        return table.select(schema.names)


class RowsOf:
    """The tables of a run, of one of them only the rows at these positions."""

    def __init__(self, tables: Tables, name: str, rows: np.ndarray):
        self._tables, self._name, self._rows = tables, name, pa.array(rows, pa.int64())

    def rows(self, name: str) -> int:
        return len(self._rows) if name == self._name else self._tables.rows(name)

    def arrow(self, name: str, columns: Sequence[str] | None = None, where: Where | None = None) -> pa.Table:
        if name != self._name:
            return self._tables.arrow(name, columns, where)
        if where is None:
            return self._tables.arrow(name, columns).take(self._rows)
        table = self._tables.arrow(name).take(self._rows)
        table = table.filter(filter_of(where))
        return table if columns is None else table.select(columns)
