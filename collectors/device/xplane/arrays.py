"""Arrow arrays from plain lists and from memory that is already filled, without a detour through pandas.

`pyarrow.array` looks whether its argument is a pandas object, which imports pandas: a fifth of a second that a
command which reads one trace would spend for nothing.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from runs.schema import SCHEMAS

_NUMPY = {pa.int32(): np.int32, pa.int64(): np.int64, pa.float64(): np.float64, pa.bool_(): np.bool_}


def over(kind: pa.DataType, values: np.ndarray, valid: np.ndarray | None = None) -> pa.Array:
    """An Arrow array over the memory of `values`; rows that are not `valid` are null."""
    bits = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little").data)
    return pa.Array.from_buffers(kind, len(values), [bits, pa.py_buffer(values.data)])


def words(values: Sequence[str | None]) -> pa.Array:
    """A text array."""
    builder = pa.lib.StringBuilder()  # pyright: ignore[reportAttributeAccessIssue]  # not in the stubs
    builder.append_values(values)
    return builder.finish()


def coded(codes: np.ndarray, dictionary: Sequence[str | None]) -> pa.DictionaryArray:
    """A dictionary array of text; codes below 0 are null."""
    return pa.DictionaryArray.from_arrays(
        over(pa.int32(), codes, None if codes.min(initial=0) >= 0 else codes >= 0), words(dictionary), safe=False
    )


def column(kind: pa.DataType, values: Sequence, rows: np.ndarray | None = None) -> pa.Array:
    """An array of a schema's type from a list in which None is null; of its entries `rows` where they are given."""
    if pa.types.is_dictionary(kind):
        numbers: dict[str | None, int] = {None: -1}
        codes = np.array([numbers.setdefault(v, len(numbers) - 1) for v in values], np.int32)
        return coded(codes if rows is None else codes[rows], list(numbers)[1:])
    if pa.types.is_string(kind):
        return words(values if rows is None else [values[i] for i in rows.tolist()])
    if isinstance(values, list) and None not in values:
        valid, exact = np.ones(len(values), bool), np.fromiter(values, _NUMPY[kind], len(values))
    else:
        valid = np.fromiter((v is not None for v in values), bool, len(values))
        exact = np.fromiter((0 if v is None else v for v in values), _NUMPY[kind], len(values))
    if rows is not None:
        valid, exact = valid[rows], exact[rows]
    if pa.types.is_boolean(kind):
        exact = np.packbits(exact, bitorder="little")
    bits = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little").data)
    return pa.Array.from_buffers(kind, len(valid), [bits, pa.py_buffer(exact.data)])


def batch(table: str, columns: Mapping[str, Sequence | pa.Array]) -> pa.RecordBatch:
    """A record batch of a table from lists or arrays by column; absent columns become null."""
    schema = SCHEMAS[table].arrow
    ready = {
        name: values if isinstance(values, pa.Array) else column(schema.field(name).type, values)
        for name, values in columns.items()
    }
    return SCHEMAS[table].batch(ready)
