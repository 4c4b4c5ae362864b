"""How long the last attempt of a job stood before it was given up, where its logs tell.

A collective that times out says how long it had waited. Its ranks held their chips meanwhile, and nothing went on. That
is believed where it fits the time since the attempt's last sign of life: a line that another clock dated does not.
"""

import re

import numpy as np

from analyzers.time.attempts import as_ns
from analyzers.time.history import History
from runs.tables import Tables, frame

S = 1_000_000_000
CAUSE = "collective_timeout"
_WAITED = re.compile(
    r"\bran for (?P<ms>\d{1,12}) milliseconds before timing out|\btimed out (?:waiting|after) (?P<also_ms>\d{1,12}) ?m"
    r"(?:illi)?s(?:ec(?:ond)?s?)?\b|\btimed out after (?P<s>\d{1,9}) ?s(?:ec(?:ond)?s?)?\b",
    re.IGNORECASE | re.ASCII,
)
SOONER, LATER = 0.9, 1.25  # of the wait that a line states: how long after the last sign of life it may be dated
BEHIND_S = 300.0  # and what may lie before it besides: steps without a line of their own, a save


def stood_until(tables: Tables, past: History, last_sign_ns: int) -> int | None:
    """Until when (ns) ranks waited after the last sign of life of the last attempt; None where nothing tells."""
    if not tables.rows("evidence"):
        return None
    rows = frame(tables, "evidence", ["ts_ns", "cause", "source", "text"], [("cause", "==", CAUSE)])
    rows = rows.dropna(subset=["ts_ns", "text"])
    source = rows["source"].astype("string").fillna("").astype(str)
    rows = rows[~source.isin(past.strangers)]
    at = as_ns(rows["ts_ns"]) + source[rows.index].map(past.shifts).fillna(0).to_numpy(dtype=np.int64)
    gap_s = (at - last_sign_ns) / S
    found = [
        int(when)
        for when, gap, text in zip(at[gap_s > 0], gap_s[gap_s > 0], rows["text"][gap_s > 0], strict=True)
        if (waited := _waited_s(str(text))) and SOONER * waited <= gap <= LATER * waited + BEHIND_S
    ]
    return max(found, default=None)


def _waited_s(text: str) -> float | None:
    """How long a collective had waited by what a line says of it."""
    if not (match := _WAITED.search(text)):
        return None
    ms = match["ms"] or match["also_ms"]
    return float(ms) / 1e3 if ms else float(match["s"])
