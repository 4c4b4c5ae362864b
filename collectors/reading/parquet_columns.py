"""Columns of a Parquet file as those of a table: taken where no value changes, refused where one would."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from errors import InputError
from runs.schema import TableSchema

MAX_TEXT = 1 << 20  # bytes of one text
MAX_TEXTS = 1 << 28  # bytes of all texts of a batch, in a column that repeats none
_EXACT_FLOAT = 1 << 53  # above it a float64 may stand for several whole numbers


@dataclass
class Unfit(Exception):
    """A column that is not what the table has there."""

    column: str
    found: str
    expected: str
    advice: str = ""


def refusal(unfit: Unfit, schema: TableSchema, where: str, row: int) -> InputError:
    """The sentence for a person. `row`: the first of the rows among which it was found."""
    meaning = next(c.meaning for c in schema.columns if c.name == unfit.column)
    return InputError(
        f"column {unfit.column} {unfit.found} (from row {row:,} on)",
        where=where,
        expected=f"{unfit.expected}: {meaning}",
        advice=unfit.advice,
    )


ENDLESS = {"le", "requested_rate_per_s"}  # columns in which infinity means something


def fitted(column: pa.Array, field: pa.Field) -> pa.Array:
    """The column in the field's type. Raises Unfit where its type is of another kind or a value does not fit."""
    target = field.type
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), target)
    if pa.types.is_dictionary(target) or pa.types.is_string(target):
        return _text(column, field)
    if pa.types.is_list(target):
        return _list(column, field)
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    found = column.type
    if pa.types.is_boolean(target):
        return column if pa.types.is_boolean(found) else _refuse(field, found, "true or false")
    if pa.types.is_integer(target):
        return _whole(column, field)
    numeric = pa.types.is_integer(found) or pa.types.is_floating(found) or pa.types.is_decimal(found)
    if not numeric:
        _refuse(field, found, "numbers")
    column = _cast(column, field, "numbers that a double holds")
    if field.name not in ENDLESS:
        return _finite(column)
    known = pc.fill_null(pc.invert(pc.is_nan(column)), pa.scalar(True))
    return pc.if_else(known, column, pa.scalar(None, column.type))


def _refuse(field: pa.Field, found: pa.DataType, expected: str) -> pa.Array:
    raise Unfit(field.name, f"is {str(found)[:80]}", expected)


def _cast(column: pa.Array, field: pa.Field, expected: str) -> pa.Array:
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid as e:
        raise Unfit(field.name, f"holds values that do not fit ({str(e).splitlines()[0][:120]})", expected) from e


def _finite(column: pa.Array) -> pa.Array:
    """NaN and infinity stand for nothing known."""
    finite = pc.is_finite(column)
    if pc.all(finite).as_py() is False:
        return pc.if_else(finite, column, pa.scalar(None, column.type))
    return column


def _whole(column: pa.Array, field: pa.Field) -> pa.Array:
    found, expected = column.type, f"whole numbers of {field.type.bit_width} bits"
    if pa.types.is_integer(found):
        return _cast(column, field, expected)
    if field.name.endswith("_ns") and (pa.types.is_timestamp(found) or pa.types.is_duration(found)):
        unit = pa.timestamp("ns", found.tz) if pa.types.is_timestamp(found) else pa.duration("ns")
        return _cast(column, pa.field(field.name, unit), "times that fit 64 bits as ns").cast(pa.int64())
    if pa.types.is_decimal(found):
        return _cast(column, field, expected)
    if not pa.types.is_floating(found):
        _refuse(field, found, expected)
    column = _finite(column.cast(pa.float64()))
    largest = pc.max(pc.abs(column)).as_py() if len(column) else None
    if largest is not None and largest > _EXACT_FLOAT:
        raise Unfit(
            field.name,
            "holds floats too large to be exact",
            expected,
            "Write it as int64: a float64 knows ns since the epoch to 256 ns only.",
        )
    return _cast(column, field, expected)


def _list(column: pa.Array, field: pa.Field) -> pa.Array:
    found = column.type
    if not (pa.types.is_list(found) or pa.types.is_large_list(found) or pa.types.is_fixed_size_list(found)):
        _refuse(field, found, "lists of numbers")
    whole = pa.types.is_integer(field.type.value_type)
    if not (pa.types.is_integer(found.value_type) or (not whole and pa.types.is_floating(found.value_type))):
        _refuse(field, found, "lists of whole numbers" if whole else "lists of numbers")
    return _cast(column, field, "lists of whole numbers of 64 bits" if whole else "lists of numbers")


def _text(column: pa.Array, field: pa.Field) -> pa.Array:
    """Text, each value once where the table wants it so. The values that no row uses are dropped."""
    if not isinstance(column, pa.DictionaryArray):
        if not _is_text(column.type):
            _refuse(field, column.type, "text")
        column = column.dictionary_encode()
    if not _is_text(column.type.value_type):
        _refuse(field, column.type.value_type, "text")
    there = column.indices.is_valid().to_numpy(False)
    numbers = column.indices.fill_null(0).to_numpy(False)
    used, places = np.unique(numbers[there], return_inverse=True)
    values = column.dictionary.take(pa.array(used, pa.int64()))
    longest = pc.max(_sizes(values)).as_py()
    if longest is not None and longest > MAX_TEXT:
        raise Unfit(field.name, f"holds a text of {longest:,} bytes", f"texts of at most {MAX_TEXT:,} bytes")
    texts = _cast(values, pa.field(field.name, pa.string()), "text in UTF-8")
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid as e:
        raise Unfit(field.name, "holds bytes that are no text", "text in UTF-8") from e
    indices = np.zeros(len(column), "i4")
    indices[there] = places
    made = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32(), mask=~there), texts)
    if pa.types.is_dictionary(field.type):
        return made
    size = int(np.bincount(places, minlength=1) @ (_sizes(texts).to_numpy(False) if len(texts) else [0]))
    if size > MAX_TEXTS:
        raise Unfit(field.name, f"holds {size:,} bytes in {len(column):,} rows", "texts of a few thousand bytes")
    return made.dictionary_decode()


def _sizes(texts: pa.Array) -> pa.Array:
    """The bytes of each text."""
    return pc.binary_length(texts)  # pyright: ignore[reportCallIssue, reportArgumentType]  # the stubs want it typed


def _is_text(found: pa.DataType) -> bool:
    return any(
        test(found)
        for test in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_string_view,
            pa.types.is_binary_view,
        )
    )
