"""What counters of devices told while they worked: how busy matrix units, memory and links were, by the hardware's own
count. It holds where FLOPs and bytes of operations are not known, as in profiles without shapes."""

import re
from typing import Any

import numpy as np
import pandas as pd

from analyzers.intervals import Spans, spans, union
from runs.tables import Tables, frame

_NAMED = re.compile(r"^GPU (?P<device>\d{1,9}) (?P<name>.+)$", re.DOTALL)
_OF_MOST = "%"  # the unit of what is a share of the most that is possible
MOST = 256  # counters that are told
FIRST = re.compile(r"tensor|matrix|\bSMs? (active|issue)|DRAM|HBM|NVLink", re.IGNORECASE)


def counters(tables: Tables) -> list[dict[str, Any]]:
    """Of each device the counters that are shares of the most that is possible: mean and highest of their samples,
    inside profiled steps where those are known. The order is by device, what tells of its units first."""
    if not tables.rows("scalars"):
        return []
    told = frame(tables, "scalars", ["ts_ns", "name", "value"], [("unit", "==", _OF_MOST)]).dropna()
    inside = _steps(tables)
    if len(inside.start):
        at = told["ts_ns"].to_numpy(dtype=np.int64)
        place = np.searchsorted(inside.start, at, "right") - 1
        told = told[(place >= 0) & (at < inside.end[np.maximum(place, 0)])]
    rows = [
        found for name, values in told.groupby("name", observed=True)["value"] if (found := _told(str(name), values))
    ]
    return sorted(rows, key=lambda r: (r["device"], not FIRST.search(r["counter"]), r["counter"]))[:MOST]


def notes(rows: list[dict[str, Any]]) -> list[str]:
    """A sentence for each device, with what tells of its units."""
    out = []
    for device in dict.fromkeys(r["device"] for r in rows):
        some = [r for r in rows if r["device"] == device and FIRST.search(r["counter"])]
        if some:
            said = ", ".join(f"{r['counter']} {r['mean_share'] * 100:.3g} %" for r in some)
            most = max(r["samples"] for r in some)
            out.append(f"By its own counters GPU {device} was in use, in the mean of {most:,} samples: {said}.")
    return out


def _told(name: str, values: pd.Series) -> dict[str, Any] | None:
    match = _NAMED.match(name)
    shares = values.to_numpy(dtype=float) / 100
    shares = shares[(shares >= 0) & (shares < np.inf)]
    if not match or not len(shares):
        return None
    return {
        "device": int(match["device"]),
        "counter": match["name"],
        "mean_share": float(shares.mean()),
        "highest_share": float(shares.max()),
        "samples": len(shares),
    }


def _steps(tables: Tables) -> Spans:
    """When profiled steps were taken."""
    steps = frame(tables, "steps", ["capture", "start_ns", "dur_ns"]).dropna()
    start = steps["start_ns"].to_numpy(dtype=np.int64)
    return union(spans(start, start + steps["dur_ns"].to_numpy(dtype=np.int64)))
