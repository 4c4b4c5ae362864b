"""Tables that lie as a Parquet file each, read as those of a database are (`collectors.reading.sqlite.Database`)."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from collectors.base import Lost
from collectors.reading.sqlite import LONGEST, NULL, ROWS
from errors import InputError

_FREE_ROWS = 1 << 12  # beyond them a row takes a byte at least: times differ from row to row
_FREE_BYTES, _MOST_TIMES = 1 << 26, 200  # unpacked bytes, and how many of them one packed byte may make beyond
_BROKEN = (pa.ArrowException, OSError, ValueError, MemoryError, OverflowError)


class ParquetTables:
    """The tables of one folder. `columns`: of each table those that can be read, by name."""

    keyed: Mapping[str, str] = {}  # no row can be looked up by its number

    def __init__(self, name: str, files: Mapping[str, Path], expected: str, advice: str):
        self._name, self._files, self._expected, self._advice = name, files, expected, advice
        self.columns: dict[str, tuple[str, ...]] = {}
        self.lost: list[Lost] = []

    def __enter__(self) -> Self:
        for table, path in self._files.items():
            try:
                with pq.ParquetFile(path) as file:
                    self._refuse_bombs(file, path)
                    schema = file.schema_arrow
            except _BROKEN as error:
                self._unreadable_part(f"the table {table[:80]}", error)
            else:
                self.columns[table] = tuple(f.name for f in schema if schema.names.count(f.name) == 1)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Files are open only while they are read."""

    @staticmethod
    def _refuse_bombs(file: pq.ParquetFile, path: Path) -> None:
        metadata = file.metadata
        groups = [metadata.row_group(g) for g in range(metadata.num_row_groups)]
        if sum(g.total_byte_size for g in groups) > _FREE_BYTES + _MOST_TIMES * path.stat().st_size:
            raise ValueError(f"it unpacks to more than {_MOST_TIMES} times its size")

    def unreadable(self, error: Exception) -> InputError:
        """The sentence for a person."""
        return InputError(
            f"tables that cannot be read ({str(error)[:200]})",
            where=self._name,
            expected=self._expected,
            advice=self._advice,
        )

    def has(self, table: str, *columns: str) -> bool:
        """Whether a table is there, with these columns."""
        return table in self.columns and set(columns) <= set(self.columns[table])

    def numbers(self, table: str, columns: Sequence[str]) -> Iterator[dict[str, np.ndarray]]:
        """Whole numbers of a table in the order of the file, at most ROWS at a time; a column that it lacks is NULL
        throughout. What cannot be read of a damaged table is told in `lost`."""
        for batch in self._batches(table, columns):
            there = batch.schema.names
            none = np.full(batch.num_rows, NULL)
            yield {c: _whole(batch.column(c)) if c in there else none.copy() for c in columns}

    def rows(self, table: str, columns: Sequence[str], most: int = 1 << 20) -> Iterator[tuple]:
        """Rows as they stand, at most so many; a column that the table lacks is None throughout."""
        left = most
        for batch in self._batches(table, columns):
            there = batch.schema.names
            none = [None] * batch.num_rows
            values = [_plain(batch.column(c)) if c in there else none for c in columns]
            yield from list(zip(*values, strict=True))[:left]
            if (left := left - batch.num_rows) <= 0:
                return

    def text(self, table: str, key: int, column: str) -> str | None:
        """The text in the row of this number: none can be looked up so."""
        return None

    def count(self, table: str) -> int:
        """How many rows a table has."""
        return sum(b.num_rows for b in self._batches(table, self.columns.get(table, ())[:1]))

    def _batches(self, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        there = [c for c in columns if c in self.columns.get(table, ())]
        if not there:
            return
        path = self._files[table]
        try:
            left = path.stat().st_size + _FREE_ROWS
            with pq.ParquetFile(path, read_dictionary=shared_texts(path, there)) as file:
                for batch in file.iter_batches(ROWS, columns=there, use_threads=False):
                    if (left := left - batch.num_rows) < 0:
                        raise ValueError("it holds more rows than fit in the file")
                    yield batch
        except _BROKEN as error:
            self._unreadable_part(f"the rest of the table {table[:80]}", error)

    def _unreadable_part(self, what: str, error: Exception) -> None:
        told = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        lost = Lost(what, f"it cannot be read: {told}")
        if lost not in self.lost:
            self.lost.append(lost)


def shared_texts(path: Path, columns: Sequence[str]) -> list[str]:
    """Columns of text, to be read as dictionaries: one long text a million times stays one text. Raises ValueError for
    an encoding in which each text may be a long one before it with a byte more."""
    metadata = pq.read_metadata(path)
    leaves = [metadata.schema.column(i) for i in range(metadata.num_columns)]
    texts = {i: leaf.path for i, leaf in enumerate(leaves) if leaf.physical_type == "BYTE_ARRAY"}
    found = {i: name for i, name in texts.items() if name in columns}
    for group in range(metadata.num_row_groups):
        if any("DELTA_BYTE_ARRAY" in metadata.row_group(group).column(i).encodings for i in found):
            raise ValueError("its texts are written as what they share with others (DELTA_BYTE_ARRAY)")
    return [*found.values()]


def _whole(column: pa.Array) -> np.ndarray:
    """A column as whole numbers; what is none is NULL."""
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int64())
    if pa.types.is_floating(kind):
        values = column.fill_null(float("nan")).to_numpy(zero_copy_only=False).astype(np.float64)
        known = np.abs(values) < 1 << 62
        return np.where(known, np.where(known, values, 0).astype(np.int64), NULL)
    if not pa.types.is_integer(column.type):
        return np.full(len(column), NULL)
    return column.cast(pa.int64(), safe=False).fill_null(int(NULL)).to_numpy(zero_copy_only=False)


def _plain(column: pa.Array) -> list[Any]:
    """A column as Python's own values, texts as texts whatever their bytes."""
    if isinstance(column, pa.DictionaryArray):
        there = column.indices.is_valid().to_numpy(False)
        used, places = np.unique(column.indices.fill_null(0).to_numpy(False)[there], return_inverse=True)
        values = _plain(column.dictionary.take(pa.array(used, pa.int64())))
        told = iter(places.tolist())
        return [values[next(told)] if known else None for known in there.tolist()]
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column.to_pylist()
    raw = column.cast(pa.large_binary()).to_pylist()
    return [v if v is None else v.decode("utf-8", "replace") if len(v) <= LONGEST else None for v in raw]
