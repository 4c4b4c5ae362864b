"""What each profiled device did: busy, communicating, waiting, fed, and when it was watched at all."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.device.activity import executions, steps_of
from analyzers.device.host_work import ThreadWork
from analyzers.device.launches.feeding import FED, feeding
from analyzers.device.waiting import fetched_for
from analyzers.grouped import Grouped
from analyzers.intervals import Spans, joined, spans, union
from analyzers.ranks.waits import Waits
from analyzers.time.history import natural_key
from runs.at_once import AtOnce
from runs.devices import seen_devices
from runs.tables import Tables, frame

# an operation of these categories occupies the device without being work of its own
NOT_COMPUTE = ("collective", "copy", "control", "infeed", "outfeed", "host", "annotation")
COMPUTE, COLLECTIVE, INFEED, COPY = 1, 2, 3, 4
_OPERATION = ("module", "op", "shape")  # columns of `ops` that kernels of one operation share
PRODUCTS = ("matmul", "convolution")  # what holds nearly all FLOPs of a model
CUSTOM = "custom-call"  # the rest of them: fused attention, and what else a program has of libraries


@dataclass(frozen=True)
class DeviceTrace:
    """One device over all captures of its host, in ns since the epoch on the host's own clock.

    `windows`: when it was profiled. `compute`, `collective`, `copy` (within the memory, or to and from the host) and
    `input` (infeed, or the host fetching data) may overlap.
    `waits`: rows of `Waits` for this device. `steps`: the profiled steps that it took (step, start_ns, dur_ns).
    `flops_at`, `flops`: start and FLOPs of each executed operation that has any. `uncounted`: while matrix products,
    convolutions and custom calls (fused attention, as a rule) ran of which nobody tells the FLOPs, though others' are
    told. `host_work`: what the thread that feeds the device did, by kind (see `launches.feeding`), those that give way
    first; empty where that is not known.
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
    uncounted: Spans
    host_work: Mapping[str, Spans]

    @property
    def label(self) -> str:
        return f"{self.host}/{self.device}"


def devices(tables: Tables) -> list[tuple[str, int]]:
    """(host, device) of every profiled device, in natural order."""
    return sorted(seen_devices(tables), key=lambda x: (natural_key(x[0]), x[1]))


def device_traces(tables: Tables, waited: Waits, of: Sequence[tuple[str, int]] | None = None) -> Iterator[DeviceTrace]:
    """One trace at a time, so that memory is bounded by the events of one host's device, or by what `AtOnce` holds.
    `of`: which (host, device); None: all."""
    tables = AtOnce(tables)
    captures = frame(tables, "captures", ["capture", "host", "start_ns", "stop_ns"])
    steps = frame(tables, "steps", ["host", "step", "start_ns", "dur_ns", "capture", "device"])
    steps = steps[steps["capture"].notna()].dropna(subset=["start_ns", "dur_ns"])
    told = ["kind", "host", "device", "start_ns", "end_ns"]
    fetches = frame(tables, "lifecycle", told, [("kind", "==", "data_loading")])
    fetches = fetches[fetches["host"].notna()].dropna(subset=["start_ns", "end_ns"])
    threads: dict[int, ThreadWork] = {}  # by capture, of one host at a time
    captured, stepped, fetched = (Grouped(rows, "host") for rows in (captures, steps, fetches))
    waited_by = Grouped(waited.rows, "host", "device")
    for host, device in devices(tables) if of is None else of:
        mine = captured.of(host).dropna(subset=["capture", "start_ns"])  # else its times are no times
        begun = [(int(c), int(s)) for c, s in zip(mine["capture"], mine["start_ns"], strict=True)]
        parts = [_capture(tables, capture, start_ns, device) for capture, start_ns in begun]
        threads = {c: threads[c] if c in threads else ThreadWork(tables, c, start_ns) for c, start_ns in begun}
        windows = _windows(mine, [p["end"] for p in parts])
        fed_by = [feeding(tables, c, s, windows, device, threads[c]) for c, s in begun]
        fed = fetched.of(host)
        fed = fed[fetched_for(fed, device)]
        rows = waited_by.of(host, device)
        yield DeviceTrace(
            host=host,
            device=device,
            windows=windows,
            compute=union(joined([p[COMPUTE] for p in parts])),
            collective=union(joined([*(p[COLLECTIVE] for p in parts), _columns(rows, "start_ns", "end_ns")])),
            copy=union(joined([p[COPY] for p in parts])),
            input=union(joined([*(p[INFEED] for p in parts), _columns(fed, "start_ns", "end_ns")])),
            waits=rows,
            steps=steps_of(stepped.of(host), host, device).sort_values("start_ns")[["step", "start_ns", "dur_ns"]],
            flops_at=np.concatenate([np.zeros(0, np.int64), *(p["flops_at"] for p in parts)]),
            flops=np.concatenate([np.zeros(0), *(p["flops"] for p in parts)]),
            uncounted=union(joined([p["uncounted"] for p in parts])),
            host_work={
                kind: union(joined([work[kind] for work in fed_by if kind in work])) for kind in FED if any(fed_by)
            },
        )


def _windows(captures: pd.DataFrame, last: list[int]) -> Spans:
    """When the captures ran: each to its end, or to the last operation seen where no end is known."""
    start = captures["start_ns"].to_numpy(dtype=np.int64)
    stop = captures["stop_ns"].to_numpy(dtype=np.int64, na_value=np.iinfo(np.int64).min)
    known = captures["stop_ns"].notna().to_numpy()
    return union(spans(start, np.where(known, stop, np.maximum(np.array(last, dtype=np.int64), start))))


def _columns(rows: pd.DataFrame, start: str, end: str) -> Spans:
    return spans(rows[start].to_numpy(dtype=np.int64), rows[end].to_numpy(dtype=np.int64))


def _capture(tables: Tables, capture: int, start_ns: int, device: int) -> dict:
    """Busy intervals of one device in one capture, by class of operation, and where its FLOPs fell."""
    columns = ["op_id", "role", "category", "flops", *_OPERATION]
    ops = frame(tables, "ops", columns, [("capture", "==", capture), ("device", "==", device)])
    ops = ops.dropna(subset=["op_id"])
    at = np.zeros(int(ops["op_id"].max()) + 2 if len(ops) else 1, dtype=np.int8)  # last: operations of no row
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

    op, start_ps, end_ps = executions(tables, capture, device)
    start, end = start_ns + start_ps // 1000, start_ns + end_ps // 1000
    op = np.minimum(op, len(at) - 1)
    kind, flops = at[op], flops_of[op]
    out: dict = {k: union(spans(start[kind == k], end[kind == k])) for k in (COMPUTE, COLLECTIVE, INFEED, COPY)}
    out["end"] = int(end.max(initial=start_ns))
    out["flops_at"], out["flops"] = start[flops > 0], flops[flops > 0]
    lacks = np.zeros(len(at), dtype=bool)
    lacks[ids[plain & _uncounted(ops)]] = True
    out["uncounted"] = union(spans(start[lacks[op]], end[lacks[op]]))
    return out


def _uncounted(ops: pd.DataFrame) -> np.ndarray:
    """Which rows are products or custom calls of which no FLOPs are told: compilers count 0 for what they do not look
    into. Of several kernels of one operation one carries the FLOPs of all."""
    category = ops["category"].astype(str)
    unseen = (category == CUSTOM) & ~(ops["flops"] > 0).fillna(False).astype(bool)
    lacks = (category.isin(PRODUCTS) & ops["flops"].isna()) | unseen
    told = ops["flops"].notna() & ~unseen
    if not lacks.any() or not told.any():
        return np.zeros(len(ops), dtype=bool)  # all or none are told: nothing is in between
    texts = ops[list(_OPERATION)].astype(object).where(ops[list(_OPERATION)].notna(), "")
    known = pd.MultiIndex.from_frame(texts[told]).unique()
    return (lacks & ~pd.MultiIndex.from_frame(texts).isin(known)).to_numpy()
