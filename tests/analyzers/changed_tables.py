"""A run's tables changed as inputs may change them: rows in another order, values or whole columns not known."""

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from runs.schema import SCHEMAS
from runs.tables import MemoryTables, Tables


class ArrowTables(MemoryTables):
    """Tables given as Arrow tables."""

    def __init__(self, tables: Mapping[str, pa.Table]):
        super().__init__({})
        self._tables = {name: table for name, table in tables.items() if table.num_rows}


def arrow_tables(tables: Tables) -> dict[str, pa.Table]:
    """Every table that has rows, in memory."""
    return {name: tables.arrow(name) for name in SCHEMAS if tables.rows(name)}


def shuffled(tables: Mapping[str, pa.Table], seed: int = 0) -> ArrowTables:
    """The same rows in another order, as from files read in another order and written in other batches."""
    rng = np.random.default_rng(seed)
    return ArrowTables({name: table.take(pa.array(rng.permutation(table.num_rows))) for name, table in tables.items()})


def without_values(
    tables: Mapping[str, pa.Table], table: str, column: str, where: Callable[[int], np.ndarray] | None = None
) -> ArrowTables:
    """The same with a column of a table not known; `where`: for so many rows, in which."""
    old = tables[table]
    index = old.schema.get_field_index(column)
    kind = old.schema.field(column).type
    if where is None:
        values = pa.nulls(old.num_rows, kind)
    else:
        keep = [not gone for gone in where(old.num_rows)]
        values = old[column].combine_chunks().take(pa.array([i if k else None for i, k in enumerate(keep)], pa.int64()))
    return ArrowTables({**tables, table: old.set_column(index, old.schema.field(column), values)})


def in_pieces(tables: Mapping[str, pa.Table], pieces: int = 3) -> ArrowTables:
    """The same rows in the same order in several record batches, each with the texts of its own."""
    return ArrowTables({name: pa.concat_tables(_pieces(table, pieces)) for name, table in tables.items()})


def _pieces(table: pa.Table, pieces: int) -> list[pa.Table]:
    edges = np.linspace(0, table.num_rows, pieces + 1).astype(int)
    return [_own_texts(table.slice(a, b - a)) for a, b in zip(edges[:-1], edges[1:], strict=True)]


def _own_texts(table: pa.Table) -> pa.Table:
    """Dictionaries of these rows alone, in another order than those of the whole."""
    columns = []
    for column in table.columns:
        if pa.types.is_dictionary(column.type):
            said = column.cast(pa.string()).to_pylist()
            values = sorted({text for text in said if text is not None}, reverse=True)
            codes = [None if text is None else values.index(text) for text in said]
            codes = pa.array(codes, column.type.index_type)
            column = pa.DictionaryArray.from_arrays(codes, pa.array(values, pa.string()))
        columns.append(column)
    return pa.table(columns, schema=table.schema)


def renamed(tables: Mapping[str, pa.Table], column: str, names: Mapping[str, str]) -> ArrowTables:
    """The same with other texts in a column of every table that has it, such as the names of hosts."""

    def other(table: pa.Table) -> pa.Table:
        if column not in table.column_names:
            return table
        index = table.schema.get_field_index(column)
        said = [None if text is None else names.get(text, text) for text in table[column].cast(pa.string()).to_pylist()]
        return table.set_column(
            index,
            table.schema.field(column),
            pa.array(said, pa.string()).dictionary_encode().cast(table.schema.field(column).type),
        )

    return ArrowTables({name: other(table) for name, table in tables.items()})


def renumbered(tables: Mapping[str, pa.Table], column: str, numbers: Callable[[int], int]) -> ArrowTables:
    """The same with other numbers in a column of every table that has it, such as those of captures."""

    def other(table: pa.Table) -> pa.Table:
        if column not in table.column_names:
            return table
        index = table.schema.get_field_index(column)
        said = [None if number is None else numbers(number) for number in table[column].to_pylist()]
        return table.set_column(index, table.schema.field(column), pa.array(said, table.schema.field(column).type))

    return ArrowTables({name: other(table) for name, table in tables.items()})


def names_of(tables: Mapping[str, pa.Table], column: str) -> list[str]:
    """Every text in a column of any table, sorted."""
    told = [table[column].cast(pa.string()).to_pylist() for table in tables.values() if column in table.column_names]
    return sorted({text for texts in told for text in texts if text})
