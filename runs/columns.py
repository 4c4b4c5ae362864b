# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyarrow's stubs leave some types open
"""What a table is made of: columns with a type and a meaning, and how rows of it are made."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from errors import InputError

if TYPE_CHECKING:
    from typing_extensions import TypeIs

TEXT = pa.dictionary(pa.int32(), pa.string())  # few distinct values, many rows
INT = pa.int64()
ID = pa.int32()
REAL = pa.float64()
FLAG = pa.bool_()


@dataclass(frozen=True)
class Column:
    name: str
    type: pa.DataType
    meaning: str


@dataclass(frozen=True)
class TableSchema:
    """A table's name, what one row is, and its columns."""

    name: str
    row: str
    columns: tuple[Column, ...]

    @cached_property
    def arrow(self) -> pa.Schema:
        return pa.schema([pa.field(c.name, c.type) for c in self.columns])

    def batch(self, columns: Mapping[str, Any]) -> pa.RecordBatch:
        """A record batch of this table from `{column: sequence or array}`; absent columns become null.

        Raises InputError for a column that the table does not have, lengths that differ, or a number beyond 64 bits.
        """
        unknown = sorted(set(columns) - {c.name for c in self.columns})
        if unknown:
            raise InputError(f"no column {', '.join(unknown)}", where=f"table {self.name}")
        lengths = {len(v) for v in columns.values()}
        if len(lengths) > 1:
            raise InputError(f"columns of different lengths {sorted(lengths)}", where=f"table {self.name}")
        rows = lengths.pop() if lengths else 0
        arrays = [self._array(c, columns.get(c.name), rows) for c in self.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.arrow)

    def _array(self, column: Column, value: Any, rows: int) -> "pa.Array[Any]":
        try:
            return _array(value, column.type, rows)
        except OverflowError as e:
            raise InputError(
                f"a number of {column.name} that 64 bits do not hold",
                where=f"table {self.name}",
                expected="numbers that a run can reach",
            ) from e


def _array(value: Any, kind: pa.DataType, rows: int) -> "pa.Array[Any]":
    """The values as an array of this kind; absent ones as so many nulls."""
    if value is None:
        return nulls(rows, kind)
    if not _is_array(value):
        return pa.array(value, type=kind)
    return value if value.type == kind else value.cast(kind)


def nulls(rows: int, kind: pa.DataType) -> "pa.Array[Any]":
    """So many nulls of a kind."""
    return pa.nulls(rows, kind)  # pyright: ignore[reportCallIssue, reportArgumentType]  # the stubs want a literal kind


def _is_array(value: object) -> "TypeIs[pa.Array[Any]]":
    return isinstance(value, pa.Array)


SOURCE = Column("source", TEXT, "name of the input file or format that the row was read from")
