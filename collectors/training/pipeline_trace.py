"""Traces of pipeline-parallel training, an operation a row, and the parallel sizes that lie beside them.

Parquet or CSV with the columns below, as the published traces of straggler studies have them; -1 means none.

    step, dp_rank, stage    whole numbers from 0
    optype                  see PIPELINE_OPS in runs/schema.py
    start_ts, duration      seconds, since the start of the step or the epoch, on one clock for all ranks
    rank, seq_id            optional: global rank; position among the operations of its type on its rank in its step
    mb_id, mc               optional: micro-batch; model chunk of the stage

Beside it a small file of `name: value` lines (meta.yaml) with dp_size, pp_size, tp_size, world_size, trial_name.
Without it the sizes follow from the ranks seen: ranks of one place, or the stride between ranks, are tensor-parallel.
"""

import contextlib
import io
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from collectors.base import Fact, Item, Lost, Rows, Source
from collectors.ingesting.gather import shown
from collectors.reading.textlog import digits
from errors import InputError
from runs.schema import PIPELINE_OPS, SCHEMAS, TEXT

NAME = "pipeline_trace"
TITLE = "pipeline trace"
HELP = "Traces of pipeline-parallel steps (Parquet or CSV: dp_rank, stage, step, optype, start_ts, duration)."

NEEDED = ("step", "dp_rank", "stage", "optype", "start_ts", "duration")
OPTIONAL = ("rank", "seq_id", "mb_id", "mc")
SIZES = {"dp_size": "data", "pp_size": "pipeline", "tp_size": "tensor"}
MAX_PLACE = 1 << 20  # a rank, stage or micro-batch beyond it is no such thing
MAX_SECONDS = 2e9  # 63 years: further no time of this trace can be
MAX_NAMES = 1_000
META_BYTES = 1 << 16
BATCH_ROWS = 65_536
FREE_ROWS = 1 << 20  # beyond them a row takes a byte at least: times differ from row to row
_OPS = {name: number for number, name in enumerate(PIPELINE_OPS)}


def sniff(source: Source) -> float:
    if source.head[:4] == b"PAR1":
        return 0.9 if not source.gzipped and set(NEEDED) <= _parquet_columns(source) else 0.0
    first, _, rest = source.head.partition(b"\n")
    if set(NEEDED) <= {c.strip(b'" \r').decode("utf-8", "replace") for c in first.split(b",")}:
        return 0.9
    lines = (first + b"\n" + rest).decode("utf-8", "replace").splitlines()
    keys = {key.strip() for key, colon, _ in (line.partition(":") for line in lines) if colon}
    return 0.8 if len(lines) < 200 and {"dp_size", "pp_size"} <= keys else 0.0


def read(source: Source) -> Iterator[Item]:
    """Operations and parallel sizes. Raises InputError where the file is damaged, or has not one usable row or size."""
    if _is_table(source):
        with _table_faults(source):
            yield from _operations(source)
    else:
        yield from _sizes(source)


def _is_table(source: Source) -> bool:
    return source.head[:4] == b"PAR1" or b"," in source.head.partition(b"\n")[0]


def _parquet_columns(source: Source) -> set[str]:
    try:
        return set(pq.read_schema(source.path).names)
    except (pa.ArrowException, OSError, ValueError):
        return set()


@dataclass
class _Seen:
    """What the rows told so far: how many were usable, which were not and why, and which ranks there are."""

    used: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    places: set[tuple[int, int, int]] = field(default_factory=set)

    def told(self) -> Iterator[Lost]:
        """What could not be used, by reason."""
        for reason, count in self.lost.items():
            if count:
                yield Lost(f"{count:,} rows", reason)
        if self.unknown:
            names = ", ".join(repr(n[:40]) for n in sorted(self.unknown)[:5])
            yield Lost(f"{self.unknown.total():,} rows", f"operations of no known type: {names}")


def _operations(source: Source) -> Iterator[Item]:
    chunked = any((_numbers(b, "mc") > 0).any() for b in _batches(source, ("mc",), _Seen()))
    seen = _Seen()
    for batch in _batches(source, (*NEEDED, *OPTIONAL), seen):
        if "optype" not in batch.schema.names:  # what each row is stands nowhere
            break
        yield Rows("pipeline", _rows(batch, source, seen, chunked))
    yield from seen.told()
    if not seen.used:
        raise InputError("no usable row in it", where=source.name, expected=f"rows of {', '.join(NEEDED)}")
    yield from _seen_sizes(seen.places)


@contextlib.contextmanager
def _table_faults(source: Source) -> Iterator[None]:
    """What Arrow says of a damaged table, as an InputError that names the file."""
    try:
        yield
    except (pa.ArrowException, ValueError, OSError) as e:
        if isinstance(e, OSError) and e.errno is not None:
            raise  # the disk's fault, not the table's
        said = shown((str(e) or type(e).__name__).splitlines()[0])
        raise InputError(f"the table is damaged ({said})", where=source.name) from e


def _batches(source: Source, columns: tuple[str, ...], seen: _Seen) -> Iterator[pa.RecordBatch]:
    """The columns that there are, some rows at a time."""
    if source.head[:4] == b"PAR1":
        file = pq.ParquetFile(source.path, pre_buffer=False)
        if there := [c for c in columns if c in file.schema_arrow.names]:
            left = FREE_ROWS + source.path.stat().st_size
            for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=there):
                if (left := left - batch.num_rows) < 0:
                    raise ValueError("more rows than fit in the file")
                yield batch
        return

    def uneven(row: csv.InvalidRow) -> Literal["skip"]:
        seen.lost["they have more or fewer fields than the head"] += 1
        return "skip"

    names = [c.strip('" \r') for c in source.head.partition(b"\n")[0].decode("utf-8", "replace").split(",")]
    if there := [c for c in columns if c in names]:
        yield from csv.open_csv(
            io.BufferedReader(_Ascii(source.open())),
            read_options=csv.ReadOptions(column_names=names, skip_rows=1, use_threads=False),
            parse_options=csv.ParseOptions(invalid_row_handler=uneven),
            convert_options=csv.ConvertOptions(include_columns=there, column_types={c: pa.string() for c in there}),
        )


class _Ascii(io.RawIOBase):
    """A stream with `?` for bytes beyond ASCII: numbers and known names have none; the CSV reader fails on some."""

    _TABLE = bytes(b if b < 128 else ord("?") for b in range(256))

    def __init__(self, stream: BinaryIO):
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._stream.read(len(buffer)).translate(self._TABLE)
        buffer[: len(piece)] = piece
        return len(piece)


def _numbers(batch: pa.RecordBatch, name: str) -> np.ndarray:
    """A column as floats; NaN where it is missing, null or no number."""
    if name not in batch.schema.names:
        return np.full(batch.num_rows, np.nan)
    column = batch.column(name)
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    import pandas as pd  # late: every ingest lists the collectors, few read text as numbers

    return pd.to_numeric(column.to_pandas().astype(object), errors="coerce").to_numpy(dtype=float)


def _place(batch: pa.RecordBatch, name: str) -> np.ndarray:
    """A column of whole numbers from 0; -1 where it holds none."""
    values = _numbers(batch, name)
    whole = (values >= 0) & (values < MAX_PLACE) & (values == np.floor(values))
    return np.where(whole, values, -1).astype(np.int64)


def _rows(batch: pa.RecordBatch, source: Source, seen: _Seen, chunked: bool) -> pa.RecordBatch:
    """The usable rows in the schema of `pipeline`; the others are counted."""
    step = _numbers(batch, "step")
    dp, stage, rank = (_place(batch, c) for c in ("dp_rank", "stage", "rank"))
    start, duration = _numbers(batch, "start_ts"), _numbers(batch, "duration")
    words = batch.column("optype").to_pandas().astype(object).astype(str)
    kind = words.map(_OPS).fillna(-1).to_numpy(dtype=np.int64)
    numbered = (step >= 0) & (step < 1 << 53) & (step == np.floor(step))
    placed = numbered & (dp >= 0) & (stage >= 0)
    timed = (np.abs(start) < MAX_SECONDS) & (duration >= 0) & (duration < MAX_SECONDS)
    known = kind >= 0
    seen.lost["they lack a whole step, data-parallel rank or stage from 0"] += int((~placed).sum())
    seen.lost["they lack a start, or a duration from 0, in seconds"] += int((placed & ~timed).sum())
    if len(seen.unknown) < MAX_NAMES:
        seen.unknown.update(words[placed & timed & ~known])
    used = np.flatnonzero(placed & timed & known)
    seen.used += len(used)
    seen.places |= set(zip(dp[used].tolist(), stage[used].tolist(), rank[used].tolist(), strict=True))

    def optional(values: np.ndarray, type: pa.DataType) -> pa.Array:
        return pa.array(values[used], mask=values[used] < 0).cast(type)

    chunk = _place(batch, "mc") if chunked else np.full(batch.num_rows, -1)
    zeros = pa.array(np.zeros(len(used), "i4"), pa.int32())
    return SCHEMAS["pipeline"].batch(
        {
            "step": step[used].astype(np.int64),
            "dp_rank": dp[used].astype(np.int32),
            "stage": stage[used].astype(np.int32),
            "rank": optional(rank, pa.int32()),
            "op_type": pa.DictionaryArray.from_arrays(pa.array(kind[used], pa.int32()), pa.array(list(_OPS))),
            "microbatch": optional(_place(batch, "mb_id"), pa.int32()),
            "chunk": optional(chunk, pa.int32()),
            "seq": optional(_place(batch, "seq_id"), pa.int64()),
            "start_ns": _ns(start[used]),
            "dur_ns": _ns(duration[used]),
            "source": pa.DictionaryArray.from_arrays(zeros, pa.array([source.name])).cast(TEXT),
        }
    )


def _ns(seconds: np.ndarray) -> np.ndarray:
    """Whole nanoseconds; seconds and their fraction apart, so that times since the epoch keep what they have."""
    whole = np.floor(seconds)
    return whole.astype(np.int64) * 1_000_000_000 + np.rint((seconds - whole) * 1e9).astype(np.int64)


def _seen_sizes(places: set[tuple[int, int, int]]) -> Iterator[Fact]:
    """Parallel sizes and chips as far as the ranks tell; tensor parallelism only where all ranks fit into one mesh."""
    data, pipeline = len({p[0] for p in places}), len({p[1] for p in places})
    sizes = {"data": data, "pipeline": pipeline}
    ranks = sorted({p[2] for p in places})
    at_a_place = len(places) / (data * pipeline)
    if ranks[0] >= 0 and len(ranks) == len(places) and at_a_place == int(at_a_place):
        stride = math.gcd(*ranks) or 1
        tensor = int(at_a_place) * stride if ranks[-1] + stride == len(ranks) * stride else 0
        if tensor:
            sizes["tensor"] = tensor
            yield Fact("chips", data * pipeline * tensor, "derived")
    yield Fact("parallelism", sizes, "derived")


def _sizes(source: Source) -> Iterator[Item]:
    """The facts of a file of `name: value` lines."""
    with source.open() as f:
        raw = f.read(META_BYTES + 1)
    if len(raw) > META_BYTES:
        raise InputError(
            f"longer than {META_BYTES:,} bytes", where=source.name, expected="a few lines of `name: value`"
        )
    said: dict[str, Any] = {}
    for line in raw.decode("utf-8", "replace").splitlines():
        key, colon, value = line.partition("#")[0].partition(":")
        if colon:
            said[key.strip()] = value.strip().strip("'\"")
    sizes = {}
    for key in (*SIZES, "world_size"):
        if key not in said:
            continue
        if (size := digits(said[key])) and size <= MAX_PLACE:
            sizes[key] = size
        else:
            yield Lost(f"{key}: {said[key][:80]}", "not a whole number from 1")
    if not sizes:
        raise InputError("no parallel sizes in it", where=source.name, expected="lines such as `dp_size: 4`")
    yield Fact("parallelism", {axis: sizes[key] for key, axis in SIZES.items() if key in sizes})
    if "world_size" in sizes:
        yield Fact("chips", sizes["world_size"])
    if said.get("trial_name"):
        yield Fact("job_name", said["trial_name"])


__all__ = ["HELP", "NAME", "read", "sniff"]
