"""FLOPs of steps by the shapes that ran: what a profile's operations executed, whatever the model needs."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.base import Facts
from analyzers.device.activity import profiled_steps, steps_of
from analyzers.subject import devices_per_chip
from analyzers.time.device_time import NOT_COMPUTE, executions
from runs.devices import seen_devices
from runs.tables import Tables, frame


@dataclass(frozen=True)
class Ran:
    """`flops`: by step number, FLOPs of one chip: the mean over the devices that a profile saw in it, times the devices
    that a chip shows as. `counted`: part of the time computing in operations whose FLOPs are told; the rest is mostly
    work that has hardly any, such as sums and norms."""

    flops: pd.Series
    counted: float


def ran_in_steps(tables: Tables, facts: Facts) -> Ran | None:
    """What profiled steps executed; None where no profile tells of steps, or no operation's FLOPs."""
    ops = frame(tables, "ops", ["capture", "op_id", "host", "device", "role", "category", "flops", "total_ns"])
    ops = ops[(ops["role"] == "compute") & ~ops["category"].astype(str).isin(NOT_COMPUTE)].dropna(subset=["op_id"])
    steps = profiled_steps(tables)
    if not len(steps) or not (ops["flops"] > 0).any():
        return None
    captures = frame(tables, "captures", ["capture", "host", "start_ns"]).dropna(subset=["capture", "start_ns"])
    parts = [
        _of_device(tables, ops, captures[captures["host"] == host], steps_of(steps, host, device), device)
        for host, device in seen_devices(tables)
    ]
    rows = pd.concat([p for p in parts if len(p)], ignore_index=True) if any(map(len, parts)) else pd.DataFrame()
    if not len(rows) or not (rows["flops"] > 0).any():
        return None
    mean = rows.groupby("step")["flops"].mean() * devices_per_chip(facts)
    total = ops["total_ns"].fillna(0).astype(float)
    whole = float(total.sum())
    return Ran(mean[mean > 0], float(total[(ops["flops"] > 0).fillna(False)].sum()) / whole if whole else 0.0)


def _of_device(
    tables: Tables, ops: pd.DataFrame, captures: pd.DataFrame, steps: pd.DataFrame, device: int
) -> pd.DataFrame:
    """(step, flops) of each step that one device took, by the start of its operations."""
    taken = steps.sort_values("start_ns")
    if not len(taken):  # its host marked no steps, others did
        return pd.DataFrame({"step": taken["step"], "flops": np.zeros(0)})
    begin, end = (taken[c].to_numpy(dtype=np.int64) for c in ("start_ns", "end_ns"))
    done = np.zeros(len(taken))
    for capture, start_ns in zip(captures["capture"], captures["start_ns"], strict=True):
        mine = ops[(ops["capture"] == capture) & (ops["device"] == device) & (ops["flops"] > 0)]
        if not len(mine):
            continue
        op, start_ps, _ = executions(tables, int(capture), device)
        of = np.zeros(max(int(op.max(initial=0)), int(mine["op_id"].max())) + 1)
        of[mine["op_id"].to_numpy(dtype=np.int64)] = mine["flops"].to_numpy(dtype=float)
        at = np.searchsorted(begin, int(start_ns) + start_ps // 1000, side="right") - 1
        within = (at >= 0) & (int(start_ns) + start_ps // 1000 < end[np.maximum(at, 0)])
        done += np.bincount(at[within], of[op[within]], len(taken))
    return pd.DataFrame({"step": taken["step"].to_numpy(), "flops": done})
