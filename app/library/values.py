"""Numbers, times and days as they stand in a search."""

import re
from datetime import UTC, datetime, timedelta

from app.library.columns import Column

_NUMBER = re.compile(r"(\$?)([+-]?)(\d{1,3}(?:,\d{3})+|\d{1,30})?(?:\.(\d{0,30}))?([a-zµ%]*)", re.IGNORECASE | re.ASCII)
_DAY = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?", re.ASCII)
_TIMES = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_PERCENT = 0.01
_MANY = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9}
_UNITS: dict[str, dict[str, float]] = {
    "share": {"": _PERCENT, "%": _PERCENT},
    "usd": {**_MANY, "usd": 1.0},
    "seconds": {"": 1.0, **_TIMES},
    "number": _MANY,
    "h": {"": 1.0, **{unit: seconds / 3600 for unit, seconds in _TIMES.items()}},
}
_EXPECTED = {
    "share": "per cent, such as 30 or 30%",
    "usd": "dollars, such as 500 or $500",
    "seconds": "a time, such as 1.5s or 300ms",
    "number": "a number, such as 64 or 1.5k",
    "h": "hours, such as 12, or 3d",
    "date": "a day, a month or a year, such as 2026-10-01",
}

Span = tuple[float, float, float]


def expected(column: Column) -> str:
    """What a column can be compared with."""
    return _EXPECTED[_sort(column)]


def span(column: Column, text: str) -> Span | None:
    """(from, the value, up to and without) of what a text says of a column, in its own unit: as exactly as it is
    written. None where it says nothing."""
    return _days(text) if column.kind == "date" else _number(text, _sort(column))


def _sort(column: Column) -> str:
    return "h" if column.unit == "h" else column.kind


def _number(text: str, sort: str) -> Span | None:
    found = _NUMBER.fullmatch(text)
    if not found or (found[3] is None and not found[4]) or (found[1] and sort != "usd"):
        return None
    whole, parts, unit = (found[3] or "0").replace(",", ""), found[4] or "", found[5].casefold()
    if (factor := _UNITS[sort].get(unit)) is None:
        return None
    value, half = float(f"{found[2]}{whole}.{parts or '0'}"), 0.5 * 10.0 ** -len(parts)
    if factor == _PERCENT:  # divided: 57 x 0.01 is a little more than the 0.57 that is kept
        return (value - half) / 100, value / 100, (value + half) / 100
    return (value - half) * factor, value * factor, (value + half) * factor


def _days(text: str) -> Span | None:
    """A day, month or year in UTC, in ns since the epoch."""
    found = _DAY.fullmatch(text)
    if not found:
        return None
    year, month, day = int(found[1]), found[2] and int(found[2]), found[3] and int(found[3])
    try:
        start = datetime(year, month or 1, day or 1, tzinfo=UTC)
        if day:
            end = start + timedelta(days=1)
        else:
            end = datetime(year + (month in (None, 12)), (month or 12) % 12 + 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
    low, high = int(start.timestamp()) * 1_000_000_000, int(end.timestamp()) * 1_000_000_000
    return low, low, high
