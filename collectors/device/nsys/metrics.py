"""Samples of GPUs' metrics (`nsys profile --gpu-metrics-devices`): SMs and tensor cores active, DRAM, NVLink and so on.

A metric's name ends in its unit, `SMs Active [Throughput %]`: a throughput is a share of the most that is possible. The
last eight bits of a type's number are the GPU.
"""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from collectors.base import Item, Lost, Rows
from collectors.device.xplane.arrays import batch, coded, over
from collectors.reading.parquet_tables import ParquetTables
from collectors.reading.sqlite import ROWS, Database

_SAMPLES, _NAMES = "GPU_METRICS", "TARGET_INFO_GPU_METRICS"
_MOST = 1 << 22  # samples that are kept of an export
_METRICS = 1 << 16
_UNIT = re.compile(r"^(?P<name>.*?)\s*\[(?P<unit>[^\[\]]+)\]\s*$", re.DOTALL)
_LONGEST_NAME = 1_000  # of which a unit is looked for
_UNITS = {"Throughput %": "%"}
_GPU = 0xFF


class Metrics:
    """Those of one export. `base_ns`: what makes a time of the export one since 1970; 0 where that is not known."""

    def __init__(self, database: Database | ParquetTables, base_ns: int | None, source: str):
        self._database, self._base_ns, self._source = database, base_ns or 0, source
        self._told = {
            (kind, metric): name
            for kind, metric, name in database.rows(_NAMES, ("typeId", "metricId", "metricName"), _METRICS)
            if isinstance(name, str)
        }
        self._codes: dict[tuple[Any, Any], int] = {}
        self._names: list[str] = []
        self._units: list[str | None] = []

    def items(self) -> Iterator[Item]:
        """Rows of `scalars`, and how many samples were left out."""
        rows: list[tuple] = []
        for row in self._database.rows(_SAMPLES, ("timestamp", "typeId", "metricId", "value"), _MOST):
            rows.append(row)
            if len(rows) >= ROWS:
                yield from self._batch(rows)
                rows = []
        yield from self._batch(rows)
        more = self._database.count(_SAMPLES) - _MOST
        if more > 0:
            yield Lost(f"{more:,} samples of GPU metrics", f"the first {_MOST:,} are kept; profile a shorter time")

    def _batch(self, rows: list[tuple]) -> Iterator[Item]:
        whole = [r for r in rows if type(r[0]) is int and abs(r[0]) < 1 << 62 and type(r[3]) in (int, float)]
        if len(whole) < len(rows):
            yield Lost(f"{len(rows) - len(whole):,} samples of GPU metrics", "their time or value is no number")
        if not whole:
            return
        code = np.array([self._code(kind, metric) for _, kind, metric, _ in whole], np.int32)
        units = [u for u in dict.fromkeys(self._units) if u is not None]
        unit = np.array([-1 if u is None else units.index(u) for u in self._units], np.int32)
        at = np.array([t for t, *_ in whole], np.int64) + self._base_ns
        columns = {
            "ts_ns": over(pa.int64(), at),
            "name": coded(code, self._names),
            "value": over(pa.float64(), np.array([float(v) for *_, v in whole])),
            "unit": coded(unit[code], units),
            "source": coded(np.zeros(len(whole), np.int32), [self._source]),
        }
        yield Rows("scalars", batch("scalars", columns))

    def _code(self, kind: Any, metric: Any) -> int:
        """Number of a metric of a GPU, which is named when it is first met."""
        if (kind, metric) not in self._codes:
            told = self._told.get((kind, metric)) or f"metric {metric}"
            match = _UNIT.match(told) if len(told) <= _LONGEST_NAME else None
            name, unit = (match["name"], match["unit"]) if match else (told, None)
            gpu = f"GPU {kind & _GPU} " if isinstance(kind, int) else ""
            self._codes[kind, metric] = len(self._names)
            self._names.append(f"{gpu}{name}"[:200])
            self._units.append(None if unit is None else _UNITS.get(unit, unit)[:40])
        return self._codes[kind, metric]
