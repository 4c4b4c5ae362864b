"""A run's history as W&B hands it out: a table as CSV or Parquet with a column for each metric, or JSON a line each
(`wandb-history.jsonl`, and `wandb-events.jsonl` with what `collectors.training.wandb_system` tells of).

From the API (`run.history()`, `scan_history()`) and in W&B's own Parquet files there is a row for each call of `log`:

    _step, _timestamp   W&B's count of calls, and when it was (seconds since the epoch). The step is the job's own where
                        there is a column train/global_step or trainer/global_step, or global_step from the first row on
    other columns       scalars, and steps where a name tells their time (`collectors.training.tracked`); an empty value
                        was not logged in that row
From the page of a chart the first column is its x axis, the others are `run - key`, with `run - key__MIN` and `__MAX`
beside each where a point stands for several: these are told where they differ. Of several runs the names stay whole.

A table with rows of several runs, each of which counts its own steps, is refused. Histories are often sampled
(`run.history()` gives 500 rows): what lies between is not in the file.
"""

import contextlib
import csv as plain_csv
import io
import re
from collections.abc import Iterator
from math import inf
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from collectors.base import Item, Source
from collectors.reading.encodings import Utf8
from collectors.reading.json_stream import objects
from collectors.reading.parquet_tables import shared_texts
from collectors.reading.textlog import Tally, clean, fits_seconds, seconds_to_ns
from collectors.training.tracked import Tracked
from collectors.training.wandb_config import axes_of, numbers, step_of
from collectors.training.wandb_system import System
from errors import InputError

NAME = "wandb_history"
TITLE = "W&B history"
HELP = (
    "History of a Weights & Biases run as CSV, Parquet or JSON lines (API, artifacts, a chart's page): metrics by step."
)

FORMAT = "wandb"  # of steps, whichever of W&B's files tells them
OWN_STEP, TIME = "_step", "_timestamp"
RUNS = ("run", "run_id", "run_name", "run.id", "run.name", "Run", "Name", "ID", "name", "id")  # columns that name a run
OWN = {OWN_STEP, TIME, "_runtime", "_wandb", "", "Unnamed: 0"}
MIN, MAX, OF_RUN = "__MIN", "__MAX", " - "
MARK = b"wandb-compacted"  # in the metadata of W&B's own Parquet files
MOST_COLUMNS = 20_000
MOST_TIMES = 200  # unpacked bytes for one of a Parquet file, beyond what does no harm
_FREE_BYTES, FREE_ROWS = 1 << 26, 1 << 17  # beyond so many rows each takes a byte at least: times and losses differ
_TIMES = re.compile(rb'"_(?:runtime|timestamp)"\s*:')
_SYSTEM = "system."
_VALUES = 1 << 21  # of all columns that are looked at together
_BLOCK_BYTES = 1 << 24  # of CSV at once: a row is no longer
OTHER_VALUES = "no numbers: text, pictures, histograms, tables"
_EXPECTED = "columns such as _step, _timestamp and one for each metric, as run.history() has them"


def sniff(source: Source) -> float:
    if source.head.lstrip()[:1] == b"{":
        return 0.9 if _of_lines(source.head) else 0.0
    if source.head[:4] == b"PAR1":
        names, marked = _parquet_columns(source)
        return 0.9 if OWN_STEP in names or marked else 0.0
    return 0.9 if _of_api(names := _header(source)) or _of_chart(names) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Scalars and steps. Raises InputError where the table is damaged, or holds no number."""
    tally, empty = Tally(), True
    with _faults(source):
        tracked = Tracked(source, FORMAT, tally)
        for rows in _entered(source, tracked, tally):
            empty = False
            yield rows
    if empty:
        raise InputError(
            "no row of metrics in it",
            where=source.name,
            expected=_EXPECTED,
            advice="W&B writes an empty table for a run that logged nothing: was it the right run?",
        )
    yield from tally.lost()


def _entered(source: Source, tracked: Tracked, tally: Tally) -> Iterator[Item]:
    if source.head.lstrip()[:1] == b"{":
        yield from _lines(source, tracked, tally)
        return
    batches = _parquet(source) if source.head[:4] == b"PAR1" else _csv(source, tally)
    runs: dict[str, set] = {}
    axes: tuple[str, ...] = ()
    for names, columns in batches:
        _one_run(names, columns, runs, source)
        some = _Columns(names, columns, tally, axes)
        axes = some.axes
        _enter(some, tracked)
        yield from tracked.full()
    yield from (*tracked.rest(), *tracked.facts())


def _one_run(names: list[str], columns: list[pa.Array], runs: dict[str, set], source: Source) -> None:
    """Raises InputError where rows are of several runs, each of which counts its own steps. `runs`: those seen."""
    for name, column in zip(names, columns, strict=True):
        if name in RUNS and not _is_number(column.type):
            seen = runs.setdefault(name, set())
            seen |= {one for one in column.unique().to_pylist() if one and not _reads_as_number(one)}
            if len(seen) > 1:
                raise InputError(
                    f"rows of several runs (column {name})",
                    where=source.name,
                    expected="the history of one run",
                    advice="Write each run's history to a file of its own, and give those of one job together.",
                )


def _reads_as_number(text: str | bytes) -> bool:
    with contextlib.suppress(ValueError):
        float(text)
        return True
    return False


def _lines(source: Source, tracked: Tracked, tally: Tally) -> Iterator[Item]:
    """Objects of JSON, of a history or of samples of the system."""
    system = System(source)
    axes: tuple[str, ...] = ()
    for offset, row in objects(source, tally):
        at = seconds_to_ns(row.get(TIME))
        found = [pair for key, value in row.items() if key not in OWN for pair in numbers(value, key)]
        if any(name.startswith(_SYSTEM) for name, _ in found):
            system.sample(at, [(name.removeprefix(_SYSTEM), value) for name, value in found])
        else:
            axes = axes or (axes_of(row) if found else ())
            axis = next((name for name in axes if step_of(row.get(name)) is not None), OWN_STEP)
            step = step_of(row.get(axis))
            tracked.counts(axis != OWN_STEP)
            for name, value in found:
                if name != axis:
                    tracked.add(step, at, clean(name), value)
        if not found and row.keys() - OWN:
            tally.add("lines", "they hold no number", offset)
        yield from tracked.full()
        yield from system.full()
    yield from (*tracked.rest(), *tracked.facts())
    yield from system.rest()


def _of_lines(head: bytes) -> bool:
    """Whether objects stand one behind the other, a line each, with W&B's own times."""
    first, _, rest = head.lstrip().partition(b"\n")
    own = b'"_step"' in first or b'"_wandb"' in first
    return own and rest.lstrip()[:1] == b"{" and bool(_TIMES.search(first))


def _of_api(names: list[str]) -> bool:
    return OWN_STEP in names and len(names) > 1


def _of_chart(names: list[str]) -> bool:
    told = {*names[1:]}
    return any(name + MIN in told and name + MAX in told and OF_RUN in name for name in told)


def _header(source: Source) -> list[str]:
    """The columns of a CSV, as far as its head tells."""
    return _columns(source.head.partition(b"\n")[0])


def _columns(line: bytes) -> list[str]:
    """The columns that the first line of a CSV names."""
    if b"," not in line or not (b"_step" in line or b"__MIN" in line) or b"\0" in line:
        return []
    try:
        return [name.strip() for name in next(plain_csv.reader([line.decode("utf-8", "replace").strip("\r\n")]), [])]
    except plain_csv.Error:
        return []


def _parquet_columns(source: Source) -> tuple[list[str], bool]:
    """(columns, whether W&B wrote it)."""
    if source.gzipped:
        return [], False
    try:
        schema = pq.read_schema(source.content)
    except (pa.ArrowException, OSError, ValueError):
        return [], False
    return schema.names, MARK in (schema.metadata or {})


@contextlib.contextmanager
def _faults(source: Source) -> Iterator[None]:
    """What Arrow says of a damaged table, as an InputError that names the file."""
    try:
        yield
    except (pa.ArrowException, ValueError, OSError, OverflowError, MemoryError) as e:
        if isinstance(e, OSError) and e.errno is not None:
            raise  # the disk's fault, not the table's
        said = " ".join((str(e) or type(e).__name__).split())[:200]
        raise InputError(f"the table is damaged ({said})", where=source.name, expected=_EXPECTED) from e


_Batch = tuple[list[str], list[pa.Array]]


def _parquet(source: Source) -> Iterator[_Batch]:
    file = pq.ParquetFile(source.content, pre_buffer=False)
    groups = [file.metadata.row_group(g) for g in range(file.num_row_groups)]
    if sum(g.total_byte_size for g in groups) > _FREE_BYTES + MOST_TIMES * source.content.stat().st_size:
        raise InputError(f"unpacks to more than {MOST_TIMES} times its size", where=source.name)
    once = [f for f in file.schema_arrow if file.schema_arrow.names.count(f.name) == 1]
    texts = [f.name for f in once if f.name in RUNS and pa.types.is_string(f.type)]
    wanted = [f.name for f in once if _is_number(f.type) or f.name in texts]
    file = pq.ParquetFile(
        source.content, pre_buffer=False, read_dictionary=shared_texts(source.content, texts) if texts else None
    )
    left = FREE_ROWS + source.content.stat().st_size
    for batch in file.iter_batches(_rows_of(wanted), columns=wanted, use_threads=False) if wanted else ():
        if (left := left - batch.num_rows) < 0:
            raise InputError("more rows than fit in the file", where=source.name, expected=_EXPECTED)
        yield batch.schema.names, [*batch.columns]


def _rows_of(columns: list[str]) -> int:
    """How many rows are looked at together."""
    return max(1, _VALUES // max(1, len(columns)))


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _csv(source: Source, tally: Tally) -> Iterator[_Batch]:
    """Columns as text, each value as it is written."""
    with source.as_far() as f:  # a thousand metrics of long names reach beyond the head
        names = _columns(f.readline(_BLOCK_BYTES))
    if len(names) > MOST_COLUMNS:
        raise InputError(f"more than {MOST_COLUMNS:,} columns", where=source.name, expected=_EXPECTED)

    def uneven(row: csv.InvalidRow) -> Literal["skip"]:
        tally.add("rows", "they have more or fewer fields than the head")
        return "skip"

    places = [str(n) for n in range(len(names))]
    with io.BufferedReader(Utf8(source.as_far())) as f:  # Arrow trips over rows that are none
        for batch in csv.open_csv(
            f,
            read_options=csv.ReadOptions(column_names=places, skip_rows=1, use_threads=False, block_size=_BLOCK_BYTES),
            parse_options=csv.ParseOptions(invalid_row_handler=uneven, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types={c: pa.binary() for c in places}, null_values=[""], strings_can_be_null=True
            ),
        ):
            for begin in range(0, batch.num_rows, _rows_of(names)):
                some = batch.slice(begin, _rows_of(names))
                yield names, [*some.columns]


class _Columns:
    """Some rows: numbers by what they are of. `axes`: what may be the job's steps, empty before the first rows."""

    def __init__(self, names: list[str], columns: list[pa.Array], tally: Tally, axes: tuple[str, ...]):
        found: dict[str, np.ndarray] = {}
        for name, column in zip(names, columns, strict=True):
            if name in found:
                tally.add("columns", f"another has the same name: {name[:80]!r}")
            elif (numbers := _floats(column, tally)) is not None:
                found[name] = numbers
        self.time = found.get(TIME)
        self.counted: bool | None = None
        self.axes = axes or _axes({name: values for name, values in found.items() if name not in OWN})
        if _of_api(names):
            axis = next((name for name in self.axes if name in found), OWN_STEP)
            self.step, self.counted = found.get(axis), axis != OWN_STEP
            self.values = {name: v for name, v in found.items() if name not in OWN and name != axis}
        else:
            self.step = found.get(names[0]) if names[0].lower().endswith("step") else None
            self.values = _of_runs({name: v for name, v in found.items() if name != names[0]})


def _axes(columns: dict[str, np.ndarray]) -> tuple[str, ...]:
    """What may be the job's steps, by the first row that has any number; empty where none has."""
    if not columns:
        return ()
    there = ~np.isnan(np.column_stack([*columns.values()]))
    rows = np.flatnonzero(there.any(axis=1))
    return axes_of([name for name, told in zip(columns, there[rows[0]], strict=True) if told]) if len(rows) else ()


def _of_runs(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Columns of a chart by the key alone, where they are of one run; what a point's mean hides beside it."""
    runs = {name.partition(OF_RUN)[0] for name in columns}
    found: dict[str, np.ndarray] = {}
    for name, values in columns.items():
        base = name.removesuffix(MIN).removesuffix(MAX)
        key = name.partition(OF_RUN)[2] if len(runs) == 1 else name
        if base.endswith(f"{OF_RUN}{OWN_STEP}"):
            continue
        if base != name and base in columns:
            values = np.where(values == columns[base], np.nan, values)
        found[key or name] = values
    return found


def _floats(column: pa.Array, tally: Tally) -> np.ndarray | None:
    """A column as numbers, NaN where there is none; None for one of anything else."""
    if _is_number(column.type):
        return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    if isinstance(column, pa.DictionaryArray):  # a text that rows share is looked at once
        return _shared(column, tally)
    try:
        return column.cast(pa.string()).cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowException:
        return _one_by_one(column, tally)


def _shared(column: pa.DictionaryArray, tally: Tally) -> np.ndarray:
    """The same of texts by their numbers in a dictionary."""
    each = _floats(column.dictionary, Tally())
    if each is None or not len(each):
        return np.full(len(column), np.nan)
    there = column.is_valid().to_numpy(False)
    values = np.where(there, each[column.indices.fill_null(0).to_numpy(False)], np.nan)
    if others := int((there & np.isnan(values)).sum()):
        tally.add("values", OTHER_VALUES, count=others)
    return values


def _one_by_one(column: pa.Array, tally: Tally) -> np.ndarray | None:
    values = np.full(len(column), np.nan)
    others = 0
    for n, raw in enumerate(column.to_pylist()):
        try:
            values[n] = float(raw) if raw else np.nan
        except (ValueError, OverflowError):
            others += 1
    if others:
        tally.add("values", OTHER_VALUES, count=others)
    return values


def _enter(columns: _Columns, tracked: Tracked) -> None:
    """Row by row, since several names of a row tell of one step."""
    if not columns.values:
        return
    tracked.counts(columns.counted)
    names, values = [*columns.values], np.column_stack([*columns.values.values()])
    for n, row in enumerate(values):
        step = None if columns.step is None else _whole(float(columns.step[n]))
        at = None if columns.time is None else _ns(float(columns.time[n]))
        for place in np.flatnonzero(~np.isnan(row)).tolist():
            tracked.add(step, at, names[place], float(row[place]))


def _whole(value: float) -> int | None:
    return int(value) if 0 <= value < 1 << 53 and value.is_integer() else None


def _ns(seconds: float) -> int | None:
    return seconds_to_ns(seconds) if 0 < seconds < inf and fits_seconds(seconds) else None
