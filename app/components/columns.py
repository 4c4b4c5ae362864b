"""Columns of tables as a person reads them: a head in words with its unit, three digits, and the key on hover.

A column is known by its key, as JSON and files have it (`fetch_s`, `padded_flops`): the key's ending says its unit, and
the median of what it holds says in which multiple of it the whole column reads best. Cells stay numbers, so that
sorting is by value; a double click on one shows all its digits. Files that are taken away keep keys and values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app.components.column_words import head, is_words
from errors import format as fmt

Scales = tuple[tuple[float, str], ...]  # (how much of the column's own unit, its name), the largest first
TIME: Scales = ((3600.0, "h"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
SIZE: Scales = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes"))
WORK: Scales = ((1e18, "EFLOPs"), (1e15, "PFLOPs"), (1e12, "TFLOPs"), (1e9, "GFLOPs"), (1e6, "MFLOPs"), (1.0, "FLOPs"))
NS_OF_2000 = 946_684_800 * 10**9  # a count of nanoseconds beyond this is a time of day since 1970
SHOWN_FROM = 1e-6  # of the unit shown: what is nearer to nothing is shown as 0
DUST = 1e-8  # of the greatest of a column: less is what sums leave, and tells nothing of its unit
NUMERIC = ("floating", "integer", "mixed-integer-float")  # what pandas calls objects that are numbers
NUMBER = "%,.3g"  # three digits, thousands apart
WHOLE = "%,d"
LONG_AS_HOURS = 2 * 3600.0  # s: times are shown in hours from here on


def per_second(scales: Scales) -> Scales:
    return tuple((factor, f"{unit.removesuffix('s') if unit.endswith('FLOPs') else unit}/s") for factor, unit in scales)


@dataclass(frozen=True)
class Measure:
    """What the ending of a key says. `own`: the unit in files; `scales`: in which it is shown, of that unit."""

    endings: tuple[str, ...]
    own: str
    scales: Scales


MEASURES = (  # the first whose ending fits
    Measure(("tflops_per_s_per_chip",), "TFLOP/s per chip", ((1.0, ""),)),
    Measure(("tokens_per_s_per_chip", "tokens_per_s_per_user", "tokens_per_s"), "tokens per second", ((1.0, ""),)),
    Measure(("flops_per_s",), "FLOP per second", per_second(WORK)),
    Measure(("bytes_per_s",), "bytes per second", per_second(SIZE)),
    Measure(("per_s",), "a second", ((1.0, "1/s"),)),
    Measure(("flops_per_byte",), "FLOPs per byte", ((1.0, ""),)),
    Measure(("chip_seconds",), "chip-seconds", ((3600.0, "chip-hours"), (1.0, "chip-seconds"))),
    Measure(("device_seconds",), "device-seconds", ((3600.0, "device-hours"), (1.0, "device-seconds"))),
    Measure(("chip_hours",), "chip-hours", ((1.0, ""),)),
    Measure(("seconds", "_s"), "seconds", TIME),
    Measure(("_ms",), "milliseconds", tuple((1e3 * f, u) for f, u in TIME)),
    Measure(("_us",), "microseconds", tuple((1e6 * f, u) for f, u in TIME)),
    Measure(("_ns",), "nanoseconds", tuple((1e9 * f, u) for f, u in TIME)),
    Measure(("bytes",), "bytes", SIZE),
    Measure(("flops", "flops_optimistic"), "FLOPs", WORK),
    Measure(("usd",), "dollars", ((1.0, "$"),)),
    Measure(
        ("share", "mfu", "hfu", "efficiency", "efficiency_optimistic", "usage", "hit_rate", "acceptance_rate"),
        "share, 0 to 1",
        ((0.01, "%"),),
    ),
)
SHARES = ("share_", "acceptance", "conditional", "theory", "low_share", "high_share")  # keys that begin so are shares
NAMES = ("id", "rank", "device", "attempt", "pid", "tid", "program", "number", "seed", "layer", "position")


def measure(key: str) -> Measure | None:
    """What a key says of its unit; None where it says none."""
    found = next((m for m in MEASURES if key.endswith(m.endings)), None)
    if found is None and key.startswith(SHARES) and key != "acceptance_length":
        return MEASURES[-1]
    return found


@dataclass(frozen=True)
class Like:
    """How a page wants a column: shown as one with this key would be, under this head and with this meaning."""

    key: str
    meaning: str = ""
    title: str = ""


def draw_table(
    rows: pd.DataFrame | Sequence[Mapping[str, Any]],
    columns: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    **more: Any,
) -> Any:
    """Draw rows. `columns`: how a page wants some of them (a `Like`, or as `st.dataframe` has it); the others are shown
    as their keys say. `labels`: the only columns to show, with their heads. `more`: as `st.dataframe` has it."""
    frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows)
    wanted = {key: Like(key, title=title) for key, title in (labels or {}).items()} | dict(columns or {})
    shown, config = as_read(frame if labels is None else frame[list(labels)], wanted)
    return st.dataframe(shown, column_config=config, **{"hide_index": True, "placeholder": fmt.NO_VALUE, **more})


def as_read(rows: pd.DataFrame, given: Mapping[str, Any]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The rows with each column in the unit that it reads best in, and how each is shown."""
    shown, config = rows.copy(deep=False), dict[str, Any]()
    for key in rows.columns if rows.columns.is_unique else ():
        wanted = given.get(key, Like(str(key)))
        if isinstance(wanted, Like):
            shown[key], config[key] = _column(wanted, rows[key])
        else:
            shown[key] = _without_dust(rows[key])
            config[key] = {**wanted, "label": wanted.get("label") or head(str(key))}
    return shown, config


def _column(wanted: Like, values: pd.Series) -> tuple[pd.Series, Any]:
    key, values = wanted.key, _as_numbers(values)
    if isinstance(values.dtype, pd.DatetimeTZDtype) or values.dtype.kind == "M":
        return _moment(wanted, values)
    if pd.api.types.is_bool_dtype(values):
        return values, st.column_config.CheckboxColumn(_head(wanted), help=_help(wanted))
    if not pd.api.types.is_numeric_dtype(values):
        return _text(values), st.column_config.Column(_head(wanted), help=_help(wanted))
    numbers = values.astype("Float64").to_numpy(dtype=float, na_value=np.nan)
    told = measure(key)
    if key.endswith("_ns") and np.nanmax(np.abs(numbers), initial=0) > NS_OF_2000:
        return _moment(wanted, pd.to_datetime(values.astype("Int64"), unit="ns", utc=True))
    if told is not None:
        return _measured(wanted, values, numbers, told)
    whole = not pd.api.types.is_float_dtype(values)
    style = ("%d" if key.endswith(NAMES) else WHOLE) if whole else NUMBER
    return (values if whole else _near(values, numbers)), st.column_config.NumberColumn(
        _head(wanted), format=style, help=_help(wanted)
    )


def _as_numbers(values: pd.Series) -> pd.Series:
    """Objects that are numbers, but for those that are not there, as numbers."""
    if values.dtype == object and pd.api.types.infer_dtype(values, skipna=True) in NUMERIC:
        return pd.to_numeric(values)
    return values


def _measured(wanted: Like, values: pd.Series, numbers: np.ndarray, told: Measure) -> tuple[pd.Series, Any]:
    factor, unit = scale(numbers, told.scales)
    scaled = pd.Series(numbers / factor, values.index)
    style = WHOLE if unit == "bytes" else NUMBER
    config = st.column_config.NumberColumn(_head(wanted, unit), format=style, help=_help(wanted, told.own))
    return _near(scaled, scaled.to_numpy()), config


def scale(numbers: np.ndarray, scales: Scales) -> tuple[float, str]:
    """In which unit a column reads best: by the median of what is not nothing."""
    some = np.abs(numbers[np.isfinite(numbers) & (numbers != 0)])
    if not len(some):
        return next(((f, u) for f, u in scales if f == 1.0), scales[-1])
    middle = float(np.median(some[some > DUST * some.max()]))
    for factor, unit in scales:
        least = factor * LONG_AS_HOURS / 3600 if unit == "h" else factor
        if middle >= least * 0.9995:
            return factor, unit
    return scales[-1]


def _near(values: pd.Series, numbers: np.ndarray) -> pd.Series:
    """Without the dust of sums (2e-17), which would be shown with an exponent, and without a minus before 0."""
    dust = (np.abs(numbers) < SHOWN_FROM) | ~np.isfinite(numbers)
    return values.mask(dust & np.isfinite(numbers), 0.0).mask(~np.isfinite(numbers)) if dust.any() else values


def _without_dust(values: pd.Series) -> pd.Series:
    """The same of a column that a page shows in its own way; any but numbers are left as they are."""
    if not pd.api.types.is_float_dtype(values):
        return values
    return _near(values, values.astype("Float64").to_numpy(dtype=float, na_value=np.nan))


def _moment(wanted: Like, values: pd.Series) -> tuple[pd.Series, Any]:
    told = st.column_config.DatetimeColumn(
        _head(wanted, "UTC"), format="YYYY-MM-DD HH:mm:ss.SSS", help=_help(wanted), timezone="UTC"
    )
    return values, told


def _text(values: pd.Series) -> pd.Series:
    """Text without what Python writes for nothing."""
    return values.where(values.notna(), None)


def _head(wanted: Like, unit: str = "") -> str:
    if not wanted.title:
        return head(wanted.key, unit)
    title = wanted.title[:1].upper() + wanted.title[1:]
    return f"{title} ({unit})" if unit else title


def _help(wanted: Like, unit: str = "") -> str | None:
    """The meaning a page gives; the key that files and JSON have, with its unit there."""
    if wanted.meaning:
        return wanted.meaning
    if is_words(wanted.key):
        return None
    return f"`{wanted.key}` in files and JSON" + (f": {unit}, with all digits." if unit else ".")
