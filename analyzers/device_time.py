"""What each profiled device did: busy, communicating, waiting, fed, and when it was watched at all."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.history import natural_key
from analyzers.intervals import Spans, joined, spans, union
from analyzers.waits import Waits
from runs.tables import Tables, frame, int_column

# an operation of these categories occupies the device without being work of its own
NOT_COMPUTE = ("collective", "copy", "control", "infeed", "outfeed", "host", "annotation")
COMPUTE, COLLECTIVE, INFEED, COPY = 1, 2, 3, 4


@dataclass(frozen=True)
class DeviceTrace:
    """One device over all captures of its host, in ns since the epoch on the host's own clock.

    `windows`: when it was profiled. `compute`, `collective`, `copy` (within the memory, or to and from the host) and
    `input` (infeed, or the host fetching data) may overlap.
    `waits`: rows of `Waits` for this device. `steps`: this host's profiled steps (step, start_ns, dur_ns).
    `flops_at`, `flops`: start and FLOPs of each executed operation that has any.
    """

    host: str
    device: int
    windows: Spans
    compute: Spans
    collective: Spans
    copy: Spans
    input: Spans
    waits: pd.DataFrame
    steps: pd.DataFrame
    flops_at: np.ndarray
    flops: np.ndarray

    @property
    def label(self) -> str:
        return f"{self.host}/{self.device}"


def devices(tables: Tables) -> list[tuple[str, int]]:
    """(host, device) of every profiled device, in natural order."""
    ops = frame(tables, "ops", ["host", "device", "role"]).dropna(subset=["host", "device"])
    ops = ops[ops["role"].isin(["compute", "async", "module"])]
    found = {(str(h), int(d)) for h, d in zip(ops["host"], ops["device"], strict=True)}
    return sorted(found, key=lambda x: (natural_key(x[0]), x[1]))


def device_traces(tables: Tables, waited: Waits) -> Iterator[DeviceTrace]:
    """One trace at a time, so that memory is bounded by the events of one host's device."""
    captures = frame(tables, "captures", ["capture", "host", "start_ns", "stop_ns"])
    steps = frame(tables, "steps", ["host", "step", "start_ns", "dur_ns", "capture"])
    steps = steps[steps["capture"].notna()].dropna(subset=["start_ns", "dur_ns"])
    fetches = frame(tables, "lifecycle", ["kind", "host", "start_ns", "end_ns"], [("kind", "==", "data_loading")])
    fetches = fetches[fetches["host"].notna()].dropna(subset=["start_ns", "end_ns"])
    for host, device in devices(tables):
        mine = captures[captures["host"] == host]
        begun = zip(mine["capture"], mine["start_ns"], strict=True)
        parts = [_capture(tables, int(capture), int(start_ns), device) for capture, start_ns in begun]
        fed = fetches[fetches["host"] == host]
        rows = waited.rows[(waited.rows["host"] == host) & (waited.rows["device"] == device)]
        yield DeviceTrace(
            host=host,
            device=device,
            windows=union(_columns(mine, "start_ns", "stop_ns")),
            compute=union(joined([p[COMPUTE] for p in parts])),
            collective=union(joined([*(p[COLLECTIVE] for p in parts), _columns(rows, "start_ns", "end_ns")])),
            copy=union(joined([p[COPY] for p in parts])),
            input=union(joined([*(p[INFEED] for p in parts), _columns(fed, "start_ns", "end_ns")])),
            waits=rows,
            steps=steps[steps["host"] == host].sort_values("start_ns")[["step", "start_ns", "dur_ns"]],
            flops_at=np.concatenate([p["flops_at"] for p in parts]),
            flops=np.concatenate([p["flops"] for p in parts]),
        )


def _columns(rows: pd.DataFrame, start: str, end: str) -> Spans:
    return spans(rows[start].to_numpy(dtype=np.int64), rows[end].to_numpy(dtype=np.int64))


def _capture(tables: Tables, capture: int, start_ns: int, device: int) -> dict:
    """Busy intervals of one device in one capture, by class of operation, and where its FLOPs fell."""
    ops = frame(tables, "ops", ["op_id", "role", "category", "flops"],
                [("capture", "==", capture), ("device", "==", device)])  # fmt: skip
    at = np.zeros(int(ops["op_id"].max()) + 1 if len(ops) else 1, dtype=np.int8)
    flops_of = np.zeros(len(at))
    work = ops["role"].isin(["compute", "async"]).to_numpy()
    category = ops["category"].astype(str).to_numpy()
    plain = (ops["role"] == "compute").to_numpy() & ~np.isin(category, NOT_COMPUTE)
    ids = ops["op_id"].to_numpy(dtype=np.int64)
    at[ids[plain]] = COMPUTE
    at[ids[work & (category == "collective")]] = COLLECTIVE
    at[ids[work & (category == "infeed")]] = INFEED
    at[ids[work & (category == "copy")]] = COPY
    flops_of[ids[plain]] = ops["flops"].fillna(0).to_numpy(dtype=float)[plain]

    events = tables.arrow("op_events", ["op_id", "start_ps", "dur_ps"],
                          [("capture", "==", capture), ("device", "==", device)])  # fmt: skip
    op, start_ps = int_column(events, "op_id", 0), int_column(events, "start_ps", 0)
    end_ps = start_ps + int_column(events, "dur_ps", 0)
    start, end = start_ns + start_ps // 1000, start_ns + end_ps // 1000
    kind, flops = at[op], flops_of[op]
    out: dict = {k: union(spans(start[kind == k], end[kind == k])) for k in (COMPUTE, COLLECTIVE, INFEED, COPY)}
    out["flops_at"], out["flops"] = start[flops > 0], flops[flops > 0]
    return out
