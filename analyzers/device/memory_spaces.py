"""Bytes that a TPU's operations read and write in HBM, as its traces tell (see `runs.memory_spaces`).

Tables hold the bytes of the statistic in hexadecimal, cut off at 256.
"""

import numpy as np
import pandas as pd

from runs.memory_spaces import HBM, STAT
from runs.tables import Tables, frame

_CUT = "..."


def hbm_bytes(tables: Tables) -> pd.Series:
    """Bytes in HBM of one execution, by (capture, op_id); operations of which it is not told are left out."""
    stats = frame(tables, "op_stats", ["capture", "op_id", "text_value"], [("name", "==", STAT)]).dropna()
    text = stats["text_value"].astype(object)
    told = {t: hbm_of(t) for t in text.unique()}
    found = pd.Series(
        text.map(told).to_numpy(dtype=float, na_value=np.nan),
        index=pd.MultiIndex.from_frame(stats[["capture", "op_id"]]),
    )
    return found[found.notna() & ~found.index.duplicated()]


def hbm_of(text: str) -> float | None:
    """Bytes in HBM by one breakdown; None where it is empty, cut off or no such message."""
    if not text or text.endswith(_CUT):
        return None
    try:
        entries = [dict(_fields(e)) for number, e in _fields(bytes.fromhex(text)) if number == 1]
        return float(sum(e.get(3, 0) for e in entries if e.get(2) == HBM))
    except (ValueError, IndexError, TypeError):
        return None


def _fields(data: bytes) -> list[tuple[int, int | bytes]]:
    """(number, value) of a message's fields; raises ValueError or IndexError for what is none."""
    found, at = [], 0
    while at < len(data):
        tag, at = _varint(data, at)
        value, at = _varint(data, at)
        if tag & 7 == 2:
            if at + value > len(data):
                raise ValueError("an entry longer than its message")
            found.append((tag >> 3, data[at : at + value]))
            at += value
        elif tag & 7 == 0:
            found.append((tag >> 3, value))
        else:
            raise ValueError(f"a field of kind {tag & 7}")
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
