"""Samples of GPUs' metrics (`nsys profile --gpu-metrics-devices`): SMs and tensor cores active, DRAM, NVLink and so on.

A metric's name ends in its unit, `SMs Active [Throughput %]`: a throughput is a share of the most that is possible. The
last eight bits of a type's number are the GPU. What Nsight scales where it shows it is exported as it was counted:
clocks named in MHz in Hz, and so on. `GENERIC_EVENT_TYPE_FIELDS` tells of each metric how its value is written: whole,
or as the bits of a floating-point number; and its name, where TARGET_INFO_GPU_METRICS does not.
"""

import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from collectors.base import Item, Lost, Rows
from collectors.device.kineto.span import EPOCH_NS
from collectors.device.xplane.arrays import batch, coded, over
from collectors.reading.parquet_tables import ParquetTables
from collectors.reading.sqlite import ROWS, Database

GPU = 0xFF
FIELDS, MOST_FIELDS = "GENERIC_EVENT_TYPE_FIELDS", 1 << 16
SAMPLES, _NAMES = "GPU_METRICS", "TARGET_INFO_GPU_METRICS"
_MOST = 1 << 22  # samples that are kept of an export
_METRICS = 1 << 16
_UNIT = re.compile(r"^(?P<name>.*?)\s*\[(?P<unit>[^\[\]]+)\]\s*$", re.DOTALL)
_LONGEST_NAME = 1_000  # of which a unit is looked for
_UNITS = {"Throughput %": "%"}
_SCALED = {"MHz": 1e6, "GB/s": 1e9}
_SCALED_BEYOND = 1e5  # no clock has so many MHz, and no memory so many GB/s: such values are not scaled yet
_BITS = {("Float", 4): ("<I", "<f"), ("Double", 8): ("<Q", "<d")}  # how bits and value are packed, by kind and bytes


@dataclass(frozen=True)
class Clock:
    """`base_ns`: what makes a time of an export one since 1970; 0 where that is not known."""

    base_ns: int

    def since_1970(self, at: np.ndarray) -> np.ndarray:
        """Times of an export; those of one that was made with `--ts-normalize=true` count from 1970 already."""
        return at + np.where(at > EPOCH_NS, 0, self.base_ns)


class Metrics:
    """Those of one export."""

    def __init__(self, database: Database | ParquetTables, clock: Clock, source: str):
        self._database, self._clock, self._source = database, clock, source
        self._told = {
            (kind, metric): name
            for kind, metric, name in database.rows(_NAMES, ("typeId", "metricId", "metricName"), _METRICS)
            if isinstance(name, str)
        }
        self._packed: dict[tuple[Any, Any], tuple[str, str]] = {}
        if database.has(SAMPLES, "value"):
            self._learn()
        self._codes: dict[tuple[Any, Any], int] = {}
        self._names: list[str] = []
        self._units: list[str | None] = []

    def _learn(self) -> None:
        """How values are written, and further names."""
        kinds = dict(self._database.rows("ENUM_NSYS_GENERIC_EVENT_FIELD_TYPE", ("id", "name"), _METRICS))
        columns, names = ("typeId", "fieldIdx", "fieldNameId", "type", "size"), {}
        for kind, metric, name, of, size in self._database.rows(FIELDS, columns, MOST_FIELDS):
            names[kind, metric] = name
            if packed := _BITS.get((kinds.get(of, ""), size)):
                self._packed[kind, metric] = packed
        wanted = {name for key, name in names.items() if key not in self._told}
        if wanted:
            texts = self._database.rows("StringIds", ("id", "value"), 1 << 24)
            known = {key: text for key, text in texts if key in wanted and isinstance(text, str)}
            self._told |= {k: known[n] for k, n in names.items() if n in known and k not in self._told}

    def items(self) -> Iterator[Item]:
        """Rows of `scalars`, and how many samples were left out."""
        rows: list[tuple] = []
        for row in self._database.rows(SAMPLES, ("timestamp", "typeId", "metricId", "value"), _MOST):
            rows.append(row)
            if len(rows) >= ROWS:
                yield from self._batch(rows)
                rows = []
        yield from self._batch(rows)
        more = self._database.count(SAMPLES) - _MOST
        if more > 0:
            yield Lost(f"{more:,} samples of GPU metrics", f"the first {_MOST:,} are kept; profile a shorter time")

    def _batch(self, rows: list[tuple]) -> Iterator[Item]:
        whole = [r for r in rows if type(r[0]) is int and abs(r[0]) < 1 << 62 and type(r[3]) in (int, float)]
        if len(whole) < len(rows):
            yield Lost(f"{len(rows) - len(whole):,} samples of GPU metrics", "their time or value is no number")
        if not whole:
            return
        code = np.array([self._code(kind, metric) for _, kind, metric, _ in whole], np.int32)
        value = np.array([self._value(kind, metric, v) for _, kind, metric, v in whole])
        scale = np.array([_SCALED.get(unit or "", 1.0) for unit in self._units])[code]
        value /= np.where(np.abs(value) > _SCALED_BEYOND, scale, 1.0)
        at = self._clock.since_1970(np.array([t for t, *_ in whole], np.int64))
        yield scalar_rows(at, code, self._names, value, self._units, self._source)

    def _value(self, kind: Any, metric: Any, value: float) -> float:
        packed = self._packed.get((kind, metric))
        if packed is None or not isinstance(value, int):
            return float(value)
        bits, told = packed
        return struct.unpack(told, struct.pack(bits, value & (1 << 8 * struct.calcsize(bits)) - 1))[0]

    def _code(self, kind: Any, metric: Any) -> int:
        """Number of a metric of a GPU, which is named when it is first met."""
        if (kind, metric) not in self._codes:
            told = self._told.get((kind, metric)) or f"metric {metric}"
            match = _UNIT.match(told) if len(told) <= _LONGEST_NAME else None
            name, unit = (match["name"], match["unit"]) if match else (told, None)
            gpu = f"GPU {kind & GPU} " if isinstance(kind, int) else ""
            self._codes[kind, metric] = len(self._names)
            self._names.append(f"{gpu}{name}"[:200])
            self._units.append(None if unit is None else _UNITS.get(unit, unit)[:40])
        return self._codes[kind, metric]


def scalar_rows(
    ts_ns: np.ndarray,
    code: np.ndarray,
    names: Sequence[str],
    value: np.ndarray,
    units: Sequence[str | None],
    source: str,
) -> Rows:
    """Rows of `scalars`. `code`: which of `names`, and of `units` beside them, each sample is of."""
    told = [unit for unit in dict.fromkeys(units) if unit is not None]
    unit = np.array([-1 if u is None else told.index(u) for u in units], np.int32)
    columns = {
        "ts_ns": over(pa.int64(), ts_ns),
        "name": coded(code, list(names)),
        "value": over(pa.float64(), value),
        "unit": coded(unit[code], told),
        "source": coded(np.zeros(len(ts_ns), np.int32), [source]),
    }
    return Rows("scalars", batch("scalars", columns))
