"""Rows of these answers as JSON has them."""

from typing import Any

import numpy as np
import pandas as pd

_WHOLE = (
    "first_event",
    "last_event",
    "memory_bytes",
    "count",
    "trip_count",
    "result_bytes",
    "instructions",
    "line",
    "captures",
    "start",
    "end",
)


def dicts(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as they are, by the names of their columns."""
    return [{str(key): value for key, value in row.items()} for row in rows.to_dict("records")]


def records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """What is not known is None, what counts is whole, tuples are lists."""
    columns = {str(key): [_plain(key, v) for v in values] for key, values in rows.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _plain(key: Any, value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(key, v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value is pd.NA or (isinstance(value, float) and not np.isfinite(value)):
        return None
    return int(value) if key in _WHOLE else value
