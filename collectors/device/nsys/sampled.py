"""What a plugin of Nsight Systems samples beside its own metrics (`nsys profile --enable nvml_metrics`): power and
temperature of GPUs.

Such samples are rows of GENERIC_EVENTS: `data` holds their fields as JSON; in exports of today GENERIC_EVENT_DATA does,
whose fields GENERIC_EVENT_TYPE_FIELDS names by type and place. The last eight bits of a type's number are the GPU. NVML
tells power in milliwatts. An export does not say whether that was kept: a median of 2,000 or more is taken for
milliwatts, since no GPU draws 2 kW and none as little as 2 W.
"""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from collectors.base import Item, Lost
from collectors.device.nsys.metrics import FIELDS, GPU, MOST_FIELDS, Clock, scalar_rows
from collectors.reading.parquet_tables import ParquetTables
from collectors.reading.sqlite import Database

EVENTS, DATA = "GENERIC_EVENTS", "GENERIC_EVENT_DATA"
_UNITS = {"Power": "W", "Temperature": "°C"}
_MOST = 1 << 20  # rows that are looked at
_LONGEST = 4_096  # of a row's own text
_MILLIWATTS = 2_000.0
_VALUES = ("doubleVal", "floatVal", "intVal", "uintVal")


class Sample(NamedTuple):
    """`row`: of GENERIC_EVENTS."""

    row: int
    at: int
    gpu: int
    field: str
    value: float


class Sampled:
    """Samples of one export."""

    def __init__(self, database: Database | ParquetTables, clock: Clock, source: str):
        self._database, self._clock, self._source = database, clock, source

    def items(self) -> Iterator[Item]:
        """Rows of `scalars`, and how many rows hold nothing of these."""
        found = list(self._found())
        others = self._database.count(EVENTS) - len({sample.row for sample in found})
        if others > 0:
            yield Lost(f"{others:,} rows of {EVENTS}", "they tell neither power nor temperature of a GPU")
        if not found:
            return
        value = np.array([sample.value for sample in found])
        power = np.array([sample.field == "Power" for sample in found])
        if power.any():
            milli = float(np.median(value[power])) >= _MILLIWATTS
            value[power] /= 1_000 if milli else 1
            taken = f"the export does not say: by its size it was taken for {'milli' if milli else ''}watts"
            yield Lost("the unit of power", taken)
        series = [(sample.gpu, sample.field) for sample in found]
        known = list(dict.fromkeys(series))
        code = np.array([known.index(one) for one in series], np.int32)
        names, units = [f"GPU {gpu} {field}" for gpu, field in known], [_UNITS[field] for _, field in known]
        at = self._clock.since_1970(np.array([sample.at for sample in found], np.int64))
        yield scalar_rows(at, code, names, value, units, self._source)

    def _found(self) -> Iterator[Sample]:
        fields = self._fields()
        types = {kind for kind, _ in fields}
        apart: dict[int, tuple[int, int, int]] = {}  # (row, time, type) of rows whose fields stand elsewhere, by number
        rows = self._database.rows(EVENTS, ("genericEventId", "timestamp", "typeId", "data"), _MOST)
        for row, (number, at, kind, data) in enumerate(rows):
            if type(at) is not int or abs(at) >= 1 << 62 or type(kind) is not int:
                continue
            for field, value in _told(data).items():
                yield Sample(row, at, kind & GPU, field, value)
            if data is None and kind in types and type(number) is int:
                apart[number] = row, at, kind
        if apart:
            yield from self._elsewhere(apart, fields)

    def _elsewhere(
        self, apart: Mapping[int, tuple[int, int, int]], fields: Mapping[tuple[int, int], str]
    ) -> Iterator[Sample]:
        for number, place, *values in self._database.rows(DATA, ("genericEventId", "fieldIdx", *_VALUES), 1 << 22):
            if type(number) is not int or number not in apart:
                continue
            row, at, kind = apart[number]
            value = next((v for v in map(_number, values) if v is not None), None)
            if value is not None and (field := fields.get((kind, place))):
                yield Sample(row, at, kind & GPU, field, value)

    def _fields(self) -> dict[tuple[int, int], str]:
        """(type, place) -> the field, of those that are read."""
        if not self._database.has(FIELDS, "fieldNameId"):
            return {}
        texts = self._database.rows("StringIds", ("id", "value"), 1 << 24)
        names = {key: text for key, text in texts if text in _UNITS}
        rows = self._database.rows(FIELDS, ("typeId", "fieldIdx", "fieldNameId"), MOST_FIELDS)
        return {(kind, place): names[key] for kind, place, key in rows if key in names}


def _told(data: Any) -> dict[str, float]:
    """The fields of a row that are read, by name."""
    if not isinstance(data, str) or len(data) > _LONGEST or not any(f'"{field}"' in data for field in _UNITS):
        return {}
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    told = told if isinstance(told, dict) else {}
    return {field: value for field in _UNITS if (value := _number(told.get(field))) is not None}


def _number(value: Any) -> float | None:
    """A number, or a text that writes one; None where it is none."""
    try:
        found = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None
