"""Tables of this project itself as Parquet files, `steps.parquet` or `steps-0001.parquet`: rows from any other format.

A file is the table that its name says. Its columns are those of `runs.schema`; any may be missing, which reads as not
known. Narrower and wider types are taken where no value changes: whole numbers of any width, floats that hold whole
numbers, timestamps for `_ns`, text in any encoding. What is of another kind altogether is refused, naming the column.

Where a file has no column `source`, `format` or `order`, they are filled: its name, `tables`, the position in the file.
Capture numbers are counted on from a base that files of one folder share, above those of all profiles of the run.
"""

import re
import zlib
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from collectors.base import Item, Rows, Source
from collectors.ingesting.gather import MAX_FILES
from collectors.reading.parquet_columns import Unfit, fitted, refusal
from collectors.reading.textlog import Tally
from errors import InputError
from runs.schema import LIFECYCLE_KINDS, SCHEMAS, TableSchema

NAME = "tables"
TITLE = "Chipledger table"
HELP = "Rows in this project's own tables: steps.parquet, lifecycle.parquet, collectives.parquet and so on."

BATCH_ROWS = 50_000
MAX_ROWS = 500_000_000  # of one file
CAPTURES = 10_000  # capture numbers of one folder
_FOLDERS = 200_000  # bases above that of the top folder; all captures fit 32 bits
_FILE = re.compile(r"(?:^|[/\\])([a-z_]+)(?:-\d+(?:-of-\d+)?)?\.parquet$")
_MAGIC = b"PAR1"
_SOURCE, _FORMAT = (next(c for c in SCHEMAS["steps"].columns if c.name == name) for name in ("source", "format"))
_NOT_KEPT = {"modules": ("file",)}  # names a file inside the run's own folder, which an input has none of


def sniff(source: Source) -> float:
    return 0.95 if source.head[:4] == _MAGIC and _table(source) is not None else 0.0


def read(source: Source) -> Iterator[Item]:
    """The rows. Raises InputError for a file that cannot be read, or whose columns are of other kinds."""
    schema = _table(source)
    if schema is None:
        raise InputError("its name is that of no table", where=source.name, expected=f"one of {', '.join(SCHEMAS)}")
    if source.gzipped:
        raise InputError("Parquet inside gzip cannot be read", where=source.name, advice="Unpack it.")
    tally = Tally()
    with source.binary() as f:
        try:
            metadata = pq.read_metadata(f)
            file = pq.ParquetFile(f, metadata=metadata, read_dictionary=_texts(metadata, schema))
            yield from _rows(file, schema, source, tally)
        except (pa.ArrowException, OSError, MemoryError, ValueError, OverflowError) as e:
            reason = str(e).splitlines()[0][:200] if str(e) else type(e).__name__
            raise InputError(
                f"not a whole Parquet file ({reason})",
                where=source.name,
                advice="Write it anew, with row groups of at most a million rows.",
            ) from e
    yield from tally.lost()


def _table(source: Source) -> TableSchema | None:
    match = _FILE.search(source.name)
    return SCHEMAS.get(match[1]) if match else None


def _texts(metadata: pq.FileMetaData, schema: TableSchema) -> list[str]:
    """Columns of text, which are read as dictionaries: one long text a million times stays one text."""
    leaves = (metadata.schema.column(i) for i in range(metadata.num_columns))
    return [leaf.path for leaf in leaves if leaf.path in schema.arrow.names and leaf.physical_type == "BYTE_ARRAY"]


def _rows(file: pq.ParquetFile, schema: TableSchema, source: Source, tally: Tally) -> Iterator[Rows]:
    columns = _columns(file, schema, source, tally)
    base, order = _capture_base(source), 0
    for group in range(file.num_row_groups):
        for batch in file.iter_batches(BATCH_ROWS, [group], columns, use_threads=False):
            try:
                made = {name: fitted(batch.column(name), schema.arrow.field(name)) for name in columns}
            except Unfit as e:
                raise refusal(e, schema, source.name, order) from e
            _fill(made, schema, source, order, batch.num_rows)
            if "capture" in made:
                made["capture"] = _renumbered(made["capture"], base, source)
            if schema.name == "lifecycle" and "kind" in made:
                _count_unknown_kinds(made["kind"], tally)
            order += batch.num_rows
            yield Rows(schema.name, schema.batch(made))


def _columns(file: pq.ParquetFile, schema: TableSchema, source: Source, tally: Tally) -> list[str]:
    """The columns to read. Raises InputError where there are none, or two of a name."""
    known, there = schema.arrow.names, file.schema_arrow.names
    columns = [name for name in there if name in known and name not in _NOT_KEPT.get(schema.name, ())]
    expected = f"columns of {schema.name}: {', '.join(known)}"
    if len(set(columns)) < len(columns):
        raise InputError("two columns have the same name", where=source.name, expected=expected)
    if not columns:
        raise InputError("it has none of the table's columns", where=source.name, expected=expected)
    if file.metadata.num_rows > MAX_ROWS:
        raise InputError(f"more than {MAX_ROWS:,} rows", where=source.name, advice="Give it in several files.")
    for name in there:
        if name not in columns and not name.startswith("__"):
            tally.add(f"column {name[:100]!r}", f"the table {schema.name} has no such column, left out")
    return columns


def _fill(made: dict[str, pa.Array], schema: TableSchema, source: Source, order: int, rows: int) -> None:
    for column, text in ((_SOURCE, source.name), (_FORMAT, NAME)):
        if column in schema.columns and column.name not in made:
            made[column.name] = pa.DictionaryArray.from_arrays(
                pa.array(np.zeros(rows, "i4"), pa.int32()), pa.array([text])
            )
    if "order" in schema.arrow.names and "order" not in made:
        made["order"] = pa.array(np.arange(order, order + rows))


def _capture_base(source: Source) -> int:
    """Where this folder's captures are counted from. Profiles have numbers below MAX_FILES, the top folder follows."""
    folder = source.name.replace("\\", "/").rpartition("/")[0]
    place = 1 + zlib.crc32(folder.encode("utf-8", "replace")) % _FOLDERS if folder else 0
    return MAX_FILES + place * CAPTURES


def _renumbered(captures: pa.Array, base: int, source: Source) -> pa.Array:
    numbers = captures.drop_null().to_numpy()
    if numbers.size and (numbers.min() < 0 or numbers.max() >= CAPTURES):
        raise InputError("a capture number out of range", where=source.name, expected=f"0 to {CAPTURES - 1:,}")
    return pa.array(captures.fill_null(0).to_numpy() + base, pa.int32(), mask=~captures.is_valid().to_numpy(False))


def _count_unknown_kinds(kinds: pa.Array, tally: Tally) -> None:
    counts = cast("Any", pc.value_counts(kinds))  # the stubs do not know that it is an array
    found: list[dict[str, Any]] = counts.to_pylist()
    for count in found:
        if count["values"] is not None and count["values"] not in LIFECYCLE_KINDS:
            reason = "no such kind of interval is known; kept, but no question uses it"
            tally.add(f"intervals of kind {count['values'][:100]!r}", reason, count=count["counts"])
