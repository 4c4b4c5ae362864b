"""What the collectors of load tests and serving engines share: loads, statistics and requests from plain values.

Tools state times in seconds or milliseconds and name the median in two ways; the tables hold seconds (`stage_stats`),
whole nanoseconds (`requests`) and `p50`. A value that is no finite number is not known.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import inf, isfinite
from typing import Any

import numpy as np
import pyarrow as pa

from collectors.base import Rows, Source
from collectors.reading.textlog import BATCH_ROWS, clean, seconds_to_ns, whole
from errors import InputError
from runs.schema import SCHEMAS
from runs.serving_schema import STAGE_METRICS

ERROR_LIMIT = 500  # characters of an error that are kept
_PERCENTILE = re.compile(r"p(?:ercentile)?[_ ]?(\d{1,3}(?:\.\d+)?)(?:th)?", re.IGNORECASE)
_WORDS = {
    "mean": "mean",
    "avg": "mean",
    "average": "mean",
    "median": "p50",
    "std": "std",
    "stddev": "std",
    "min": "min",
    "max": "max",
    "total": "total",
    "sum": "total",
}


def number(value: object) -> float | None:
    """A JSON number, or text that is one, as a finite float; None for anything else."""
    if isinstance(value, str):
        try:
            value = float(value.strip().replace(",", ""))
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1e300 < value < 1e300:
        return None
    return float(value)


def count(value: object) -> int | None:
    """A whole number from 0 that 64 bits hold (3, 3.0 and "3" are 3); None for anything else."""
    found = whole(number(value)) if isinstance(value, str | float) else whole(value)
    return found if found is not None and found >= 0 else None


def rate(value: object) -> float | None:
    """Requests per second that were to be sent: above 0, infinite where all go at once ("inf"); None where not told."""
    if value == inf or (isinstance(value, str) and value.strip().lower() in ("inf", "infinity")):
        return inf
    found = number(value)
    return found if found is not None and found > 0 else None


def statistic(word: str) -> str | None:
    """A statistic as `stage_stats` names it: median and P50 are p50, 99th and p99.0 are p99; None where it is none."""
    word = word.strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    if match := _PERCENTILE.fullmatch(word) or re.fullmatch(r"(\d{1,3}(?:\.\d+)?)(?:th|%)?", word):
        return f"p{float(match[1]):g}" if float(match[1]) <= 100 else None
    return None


def scaled(value: float, divisor: float) -> float:
    """A printed number in another unit with the digits that it had: 80.1 % gives 0.801, not 0.8009999999999999."""
    return float(f"{value / divisor:.15g}")


def milliseconds(value: object) -> float | None:
    """Milliseconds, not below 0, as seconds with the digits that were printed; None for what is no such time."""
    found = number(value)
    return None if found is None or found < 0 else scaled(found, 1e3)


def refuse_template(source: Source, what: str) -> InputError:
    """The error for a result whose numbers are placeholders such as `xx.xx`."""
    return InputError(
        f"a template of {what}: it has the rows of a result and placeholders such as `xx.xx` in place of numbers",
        where=source.name,
        expected=f"{what} with the numbers of a run",
        advice="Give the output of a run; templates in guides say what to expect, and nothing was measured.",
    )


class Loads:
    """The loads of one input, gathered for `stages` and `stage_stats`."""

    def __init__(self, source: Source, tool: str):
        """`tool`: NAME of the collector."""
        self._source, self._tool = clean(source.name), tool
        self._stem = self._source.removesuffix(".json")  # other endings stay: a.log and a.json may tell of one load
        self._columns: list[dict[str, Any]] = []
        self._stats: list[tuple[str, str, str, float]] = []
        self._names: set[str] = set()
        self._numbers: dict[str, int] = {}  # by name: how many loads were called so

    def __len__(self) -> int:
        return len(self._columns)

    def name(self, label: str = "") -> str:
        """A name for the next load, not used before in this input: its file, `label` (such as "rate 4"), and a number
        where that is taken. Reserved by the call, for requests that are handed on before their load is summed up."""
        base = clean(f"{self._stem} {label}".strip() or "load")
        unique, n = base, self._numbers.get(base, 1)
        while unique in self._names:
            n += 1
            unique = f"{base} #{n}"
        self._numbers[base] = n
        self._names.add(unique)
        return unique

    def add(
        self,
        columns: Mapping[str, Any],
        stats: Mapping[tuple[str, str], float | None],
        *,
        name: str | None = None,
        label: str = "",
    ) -> str:
        """Add a load and return its name. `columns`: of `stages`, without stage, tool, order, source and outcome.
        `stats`: {(metric of STAGE_METRICS, statistic): value in the metric's unit}, None where not known.

        Where no request was answered, `outcome` is failed and its statistics of time and rate are dropped: 0.0 was
        printed in place of a measurement.
        """
        stage = self.name(label) if name is None else name
        failed = columns.get("completed") == 0
        kept = dict(columns)
        if failed:
            for rates in (
                "request_rate_per_s",
                "goodput_per_s",
                "output_tokens_per_s",
                "total_tokens_per_s",
                "peak_output_tokens_per_s",
            ):
                kept.pop(rates, None)
        kept |= {
            "stage": stage,
            "tool": self._tool,
            "order": len(self._columns),
            "source": self._source,
            "outcome": "failed" if failed else "measured",
        }
        self._columns.append(kept)
        for (metric, which), value in stats.items():
            assert metric in STAGE_METRICS, metric
            if value is not None and isfinite(value) and not failed:
                self._stats.append((stage, metric, which, float(value)))
        return stage

    def rows(self) -> Iterator[Rows]:
        """Everything added so far, once."""
        if self._columns:
            yield rows_of("stages", self._columns)
        if self._stats:
            stage, metric, which, value = zip(*self._stats, strict=True)
            batch = SCHEMAS["stage_stats"].batch({"stage": stage, "metric": metric, "statistic": which, "value": value})
            yield Rows("stage_stats", batch)
        self._columns, self._stats = [], []


class Requests:
    """Rows of `requests` of one input, from plain values by name, handed on in batches."""

    def __init__(self, source: Source):
        self._source = clean(source.name)
        self._rows: list[dict[str, Any]] = []

    def add(self, **columns: Any) -> None:
        """One request: columns of `requests` without `source`. Lists as lists of whole ns, errors of any length."""
        if isinstance(error := columns.get("error"), str):
            columns["error"] = clean(error)[:ERROR_LIMIT]
        self._rows.append(columns)

    def full(self) -> Iterator[Rows]:
        """The batch gathered so far, if it is large enough to be handed on."""
        if len(self._rows) >= BATCH_ROWS:
            yield from self.rest()

    def rest(self) -> Iterator[Rows]:
        """Whatever is gathered, if anything."""
        if self._rows:
            for row in self._rows:
                row["source"] = self._source
            yield rows_of("requests", self._rows)
            self._rows = []


def rows_of(table: str, rows: Sequence[Mapping[str, Any]]) -> Rows:
    """Rows of one table from mappings of column to value; columns that a row lacks are null."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return Rows(table, SCHEMAS[table].batch({name: [row.get(name) for row in rows] for name in names}))


def duration_ns(value: object) -> int | None:
    """Seconds, not below 0, as whole ns; None for what is no such time. Zero stays: analyzers leave it out by name."""
    found = seconds_to_ns(value)
    return found if found is not None and found >= 0 else None


def gaps_ns(lists: Sequence[object]) -> tuple[pa.ListArray, int]:
    """(column `gaps_ns` from a list of seconds of each request, how many lists were no list of times).

    A list that holds anything but finite numbers from 0 is null as a whole: a gap left out would shift the others.
    """
    values, lengths, valid, bad = [], [], [], 0
    for raw in lists:
        good, length = isinstance(raw, list), 0
        if isinstance(raw, list) and raw:
            try:
                seconds = np.array(raw, dtype=float) if not any(isinstance(x, str | bool) for x in raw) else None
            except (TypeError, ValueError, OverflowError):
                seconds = None
            good = seconds is not None and seconds.ndim == 1 and bool(((seconds >= 0) & (seconds < 9e9)).all())
            if seconds is not None and good:
                length = len(raw)
                values.append(np.rint(seconds * 1e9).astype(np.int64))
        bad += not good and raw is not None
        valid.append(good)
        lengths.append(length)
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    flat = pa.array(np.concatenate(values) if values else np.zeros(0, dtype=np.int64))
    absent = pa.array(~np.array(valid, dtype=bool), pa.bool_())
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat, mask=absent), bad
