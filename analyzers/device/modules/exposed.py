"""Exposed communication by the module that the collective belongs to: collectives run, and nothing computes."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from analyzers.device.activity import activities
from analyzers.intervals import Spans, overlap_with, spans
from runs.tables import Tables, frame, int_column

_BY = ["capture", "op_id", "host", "device", "module", "op", "category", "scope"]


def exposed(tables: Tables, options: Mapping[str, Any]) -> dict[str | None, float]:
    """Device-seconds by scope, None for collectives of no scope.

    An instant in which several collectives of a device run belongs to the one that began first. Added up over all, it
    is the question `overlap`'s exposed communication over the same time.
    """
    rows = frame(tables, "ops", _BY, [("category", "==", "collective")])
    rows = rows[rows["device"].notna()].astype({"host": str, "module": object, "scope": object})
    if (module := options.get("module")) is not None:
        rows = rows[rows["module"] == module]
    found: dict[str | None, float] = {}
    if not len(rows):
        return found
    for activity in activities(tables):
        if options.get("host") not in (None, activity.host) or options.get("device") not in (None, activity.device):
            continue
        mine = rows[(rows["host"] == activity.host) & (rows["device"] == activity.device)]
        scope, run = _executions(tables, mine, activity.host, activity.device)
        alone = run.end - run.start - overlap_with(activity.computation, run)
        for name, part in pd.Series(alone).groupby(pd.Series(scope, dtype=object), dropna=False):
            key = None if pd.isna(name) else str(name)
            found[key] = found.get(key, 0.0) + float(part.sum()) / 1e9
    return found


def _executions(tables: Tables, ops: pd.DataFrame, host: str, device: int) -> tuple[np.ndarray, Spans]:
    """(scope, interval) of every collective of a device in ns since the epoch, so that no instant is in two of them."""
    parts = [*_events(tables, ops, host, device), _joint(tables, ops, host, device)]
    scope = np.concatenate([p[0] for p in parts])
    start, end = (np.concatenate([p[i] for p in parts]) for i in (1, 2))
    order = np.lexsort((-end, start))
    scope, start, end = scope[order], start[order], end[order]
    before = np.maximum.accumulate(np.concatenate(([np.iinfo(np.int64).min], end[:-1]))) if len(end) else end
    start = np.maximum(start, before)
    some = end > start
    return scope[some], spans(start[some], end[some])


Part = tuple[np.ndarray, np.ndarray, np.ndarray]


def _events(tables: Tables, ops: pd.DataFrame, host: str, device: int) -> Iterator[Part]:
    captures = frame(tables, "captures", ["capture", "host", "start_ns"]).dropna()
    captures = captures[captures["host"].astype(str) == host]
    for capture, begun in zip(captures["capture"].tolist(), captures["start_ns"].tolist(), strict=True):
        mine = ops[ops["capture"] == capture].dropna(subset=["op_id"])
        if not len(mine):
            continue
        ids = mine["op_id"].to_numpy(dtype=np.int64)
        events = tables.arrow(
            "op_events",
            ["op_id", "start_ps", "dur_ps"],
            [("capture", "==", capture), ("device", "==", device), ("op_id", "in", ids.tolist())],
        ).drop_null()
        op, start, took = (int_column(events, name) for name in events.column_names)
        order = np.argsort(ids)
        at = order[np.searchsorted(ids, op, sorter=order)]
        yield mine["scope"].to_numpy(dtype=object)[at], begun + start // 1000, begun + (start + took) // 1000


def _joint(tables: Tables, ops: pd.DataFrame, host: str, device: int) -> Part:
    """Collectives that are one interval from their start to their done."""
    rows = frame(tables, "collectives", ["host", "device", "module", "op", "start_ns", "end_ns"])
    rows = rows.dropna(subset=["host", "device", "op", "start_ns", "end_ns"])
    rows = rows[(rows["host"].astype(str) == host) & (rows["device"] == device)]
    rows, told = rows.astype({"module": object, "op": object}), ops[["module", "op", "scope"]].astype(object)
    untold = rows["module"].isna()  # else two programs may name operations alike
    both, alone = told.drop_duplicates(["module", "op"]), told[["op", "scope"]].drop_duplicates("op")
    rows = pd.concat(
        [rows[~untold].merge(both, on=["module", "op"]), rows[untold].merge(alone, on="op")], ignore_index=True
    )
    scope = rows["scope"].to_numpy(dtype=object)
    return scope, rows["start_ns"].to_numpy(dtype=np.int64), rows["end_ns"].to_numpy(dtype=np.int64)
