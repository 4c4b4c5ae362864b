"""What a table is made of: columns with a type and a meaning, and how rows of it are made."""

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from errors import InputError

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

    def batch(self, columns: dict) -> pa.RecordBatch:
        """A record batch of this table from `{column: sequence or array}`; absent columns become null.

        Raises InputError for a column that the table does not have or lengths that differ.
        """
        unknown = sorted(set(columns) - {c.name for c in self.columns})
        if unknown:
            raise InputError(f"no column {', '.join(unknown)}", where=f"table {self.name}")
        lengths = {len(v) for v in columns.values()}
        if len(lengths) > 1:
            raise InputError(f"columns of different lengths {sorted(lengths)}", where=f"table {self.name}")
        rows = lengths.pop() if lengths else 0
        arrays = []
        for field in self.arrow:
            value = columns.get(field.name)
            if value is None:
                arrays.append(pa.nulls(rows, field.type))
            elif isinstance(value, pa.Array) and value.type == field.type:
                arrays.append(value)
            elif isinstance(value, pa.Array):
                arrays.append(value.cast(field.type))
            else:
                arrays.append(pa.array(value, type=field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self.arrow)


SOURCE = Column("source", TEXT, "name of the input file or format that the row was read from")
