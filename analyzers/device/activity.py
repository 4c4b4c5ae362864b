"""What each profiled device did at each instant, by the three kinds of work that HTA tells apart.

Holistic Trace Analysis sorts the kernels of a device into computation, communication and memory, and compares
unions of their intervals, never sums of durations. Here:

    computation     operations that the device's own line shows, other than the kinds below
    communication   collectives, whether they block that line or run beside it
    memory          copies and fills, on that line or beside it
    infeed          waiting for the host's data on that line: no work, counted as idle
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analyzers.grouped import Grouped
from analyzers.intervals import Spans, joined, overlap_with, spans, union
from analyzers.ranks.sessions import sessions
from analyzers.shared import Shared
from analyzers.time.history import natural_key
from runs.coded import Coded, coded, told
from runs.tables import Tables, frame, int_column

WORK = ("compute", "async")  # roles whose operations occupy a device
ELSEWHERE = ("control", "outfeed", "host", "annotation")  # they contain others, or do not occupy the device
COMPUTATION, COMMUNICATION, MEMORY, INFEED = 1, 2, 3, 4
CATEGORY_KIND = {"collective": COMMUNICATION, "copy": MEMORY, "infeed": INFEED}
PYTHON_TEXT = pd.StringDtype("python", na_value=np.nan)
WINDOWS = ("steps", "operations", "capture")


@dataclass(frozen=True)
class Activity:
    """One device over all captures of its host, in ns since the epoch on that host's clock.

    `computation`, `communication`, `memory`, `infeed`: unions; they may overlap one another. `operations`: from the
    first to the last of those in each capture, `capture`: each capture as a whole, `stepped`: from the first to the
    last annotated step of each capture. `steps`: step, start_ns, end_ns, taken of the host's profiled steps, by time.
    """

    host: str
    device: int
    computation: Spans
    communication: Spans
    memory: Spans
    infeed: Spans
    operations: Spans
    capture: Spans
    stepped: Spans
    steps: pd.DataFrame

    def windows(self, which: str | None) -> tuple[Spans, str]:
        """The windows called `which` (see WINDOWS) and their name; None: steps where there are any, else operations."""
        name = which or ("steps" if len(self.stepped.start) else "operations")
        return {"steps": self.stepped, "operations": self.operations, "capture": self.capture}[name], name


@dataclass(frozen=True)
class Split:
    """Nanoseconds of each of n windows, int64. Exactly `computing + exposed + copying + idle = width`.

    `computing`: computation. `communicating`: communication, of which `overlapped` runs under computation and
    `exposed` does not. `copying`: memory work under neither. `idle`: none of the three. `remembering`: all memory work.
    """

    width: np.ndarray
    computing: np.ndarray
    communicating: np.ndarray
    overlapped: np.ndarray
    exposed: np.ndarray
    remembering: np.ndarray
    copying: np.ndarray
    idle: np.ndarray


def split(activity: Activity, windows: Spans) -> Split:
    """How each window was spent. O((m + n) log m) for m intervals."""
    both = union(joined([activity.computation, activity.communication]))
    busy = union(joined([both, activity.memory]))
    width = windows.end - windows.start
    computing = overlap_with(activity.computation, windows)
    communicating = overlap_with(activity.communication, windows)
    either, any_work = overlap_with(both, windows), overlap_with(busy, windows)
    return Split(
        width=width,
        computing=computing,
        communicating=communicating,
        overlapped=computing + communicating - either,
        exposed=either - computing,
        remembering=overlap_with(activity.memory, windows),
        copying=any_work - either,
        idle=width - any_work,
    )


def activities(tables: Tables) -> Iterator[Activity]:
    """Every profiled device, one at a time, so that memory is bounded by the events of one device."""
    shared = Shared(tables)
    seen = shared.get(("seen",), lambda: _seen(tables))
    for host, device in seen.devices:
        yield shared.get(("activity", host, device), lambda d=(host, device): _activity(tables, seen, *d))


@dataclass(frozen=True)
class _Seen:
    """Rows of the tables that tell of devices, by host, or by host and device. `devices`: in natural order."""

    captures: Grouped
    steps: Grouped
    ops: Grouped
    collectives: Grouped
    devices: list[tuple[str, int]]


def _seen(tables: Tables) -> _Seen:
    captures = frame(tables, "captures", ["capture", "host", "start_ns", "stop_ns"])
    captures = captures.dropna(subset=["capture", "host", "start_ns"])  # nothing can be placed without these
    captures = captures.assign(host=captures["host"].astype(str)).sort_values("start_ns")
    steps = profiled_steps(tables)
    done = Grouped(_working(tables), "host", "device")
    return _Seen(
        captures=Grouped(captures, "host"),
        steps=Grouped(steps, "host"),
        ops=done,
        collectives=Grouped(_collectives(tables), "host", "device"),
        devices=sorted(done.keys, key=lambda x: (natural_key(x[0]), x[1])),
    )


def _working(tables: Tables) -> pd.DataFrame:
    """capture, op_id, host, device and kind of every operation that occupies a device; 0: of none."""
    names = ["capture", "op_id", "host", "device", "role", "category"]
    ops = told(tables.arrow("ops", names), ["capture", "op_id", "host", "device"])
    role, category, host = (coded(ops, name) for name in ("role", "category", "host"))
    kind_of = [0 if text in ELSEWHERE else CATEGORY_KIND.get(text, COMPUTATION) for text in category.texts]
    kind = np.array(kind_of, dtype=np.int8)[category.code]
    kind[role.among(("async",)) & (kind == COMPUTATION)] = 0  # between its start and its done anything may have run
    whole = {name: int_column(ops, name) for name in ("capture", "op_id", "device")}
    return pd.DataFrame({**whole, "host": _categorical(host), "kind": kind})[role.among(WORK)]


def _collectives(tables: Tables) -> pd.DataFrame:
    names = ["capture", "host", "device", "start_ns", "end_ns"]
    rows = told(tables.arrow("collectives", names), names)
    return pd.DataFrame(
        {name: _categorical(coded(rows, name)) if name == "host" else int_column(rows, name) for name in names}
    )


def _categorical(text: Coded) -> pd.Categorical:
    once = text.as_they_come()
    names: Any = list(once.texts)  # the stubs take no list
    return pd.Categorical.from_codes(once.code, names)


def profiled_steps(tables: Tables) -> pd.DataFrame:
    """host, step, start_ns, end_ns, capture, device (nullable, see the schema) and taken (see `_taken`) of every step
    that a profile saw, in order of host and time."""
    return Shared(tables).get(("profiled steps",), lambda: _profiled_steps(tables)).copy(deep=False)


def _profiled_steps(tables: Tables) -> pd.DataFrame:
    needed = ["capture", "host", "start_ns", "dur_ns", "step"]
    steps = told(tables.arrow("steps", [*needed, "device"]), needed)
    whole = {name: int_column(steps, name) for name in ("step", "start_ns", "dur_ns", "capture")}
    host, device = coded(steps, "host").as_they_come(), steps["device"].combine_chunks()
    names = np.array(host.texts, dtype=object)
    order = np.lexsort((whole["start_ns"], np.argsort(np.argsort(names))[host.code]))
    number = int_column(steps, "device")
    alone = pd.arrays.IntegerArray(number.astype(np.int32), ~device.is_valid().to_numpy(False))
    rows = pd.DataFrame(
        {
            "host": pd.array(names, dtype=PYTHON_TEXT).take(host.code[order]),
            "step": whole["step"][order],
            "start_ns": whole["start_ns"][order],
            "end_ns": (whole["start_ns"] + whole["dur_ns"])[order],
            "capture": whole["capture"][order],
            "device": alone.take(order),
        }
    )
    place = host.code[order] * (int(number.max(initial=-1)) + 2) + number[order] + 1
    return rows.assign(taken=_taken(tables, rows, place))


def _taken(tables: Tables, rows: pd.DataFrame, place: np.ndarray) -> np.ndarray:
    """The time that the job took the step of each row, from 0: captures that were taken together (`sessions.py`) show
    one and the same. Where no place shows a step twice, it was taken once. `place`: whose step a row is."""
    again = rows.groupby([place, "step"], sort=False)["step"].transform("size").to_numpy() > 1
    taken = np.zeros(len(rows), dtype=np.int64)
    if not again.any():
        return taken
    session = sessions(tables, place, rows["capture"].to_numpy(), rows["step"].to_numpy())
    nth = rows.groupby([place, session, "step"], sort=False).cumcount().to_numpy()
    order = session * (int(nth.max()) + 1) + nth
    ranked = pd.Series(order).groupby(rows["step"]).rank("dense").to_numpy(dtype=np.int64) - 1
    return np.where(rows["step"].isin(rows["step"][again]), ranked, taken)


def steps_of(steps: pd.DataFrame, host: str, device: int) -> pd.DataFrame:
    """Of profiled steps, those that a device took: its host's, but for those that other devices were alone on."""
    return steps[(steps["host"] == host) & (steps["device"].isna() | (steps["device"] == device).fillna(False))]


def _activity(tables: Tables, seen: _Seen, host: str, device: int) -> Activity:
    captures, ops = seen.captures.of(host), seen.ops.of(host, device)
    collectives, steps = seen.collectives.of(host, device), steps_of(seen.steps.of(host), host, device)
    parts, extents, wholes, stepped = [], [], [], []
    for capture, begun, stop in zip(captures["capture"], captures["start_ns"], captures["stop_ns"], strict=True):
        part = _kinds(tables, int(capture), int(begun), device, ops[ops["capture"] == capture])
        joint = collectives[collectives["capture"] == capture]  # a start and its done are one interval there
        joint = spans(joint["start_ns"].to_numpy(dtype=np.int64), joint["end_ns"].to_numpy(dtype=np.int64))
        part[COMMUNICATION] = joined([part[COMMUNICATION], joint])
        every = joined(list(part.values()))
        if not len(every.start):
            continue
        parts.append(part)
        extent = int(every.start.min()), int(every.end.max())
        extents.append(extent)
        wholes.append((min(int(begun), extent[0]), extent[1] if pd.isna(stop) else max(int(stop), extent[1])))
        if len(own := steps[steps["capture"] == capture]):
            stepped.append((int(own["start_ns"].min()), int(own["end_ns"].max())))
    return Activity(
        host=host,
        device=device,
        computation=union(joined([p[COMPUTATION] for p in parts])),
        communication=union(joined([p[COMMUNICATION] for p in parts])),
        memory=union(joined([p[MEMORY] for p in parts])),
        infeed=union(joined([p[INFEED] for p in parts])),
        operations=union(_spans(extents)),
        capture=union(_spans(wholes)),
        stepped=union(_spans(stepped)),
        steps=steps[["step", "start_ns", "end_ns", "taken"]],
    )


def _spans(pairs: list[tuple[int, int]]) -> Spans:
    return spans([int(a) for a, _ in pairs], [int(b) for _, b in pairs])


def _kinds(tables: Tables, capture: int, start_ns: int, device: int, ops: pd.DataFrame) -> dict[int, Spans]:
    """Unions by kind of one device's operations in one capture, `ops` being those of its rows."""
    kind_of = np.zeros(int(ops["op_id"].max()) + 1 if len(ops) else 1, dtype=np.int8)
    kind_of[ops["op_id"].to_numpy()] = ops["kind"].to_numpy()
    op, start_ps, end_ps = executions(tables, capture, device)
    seen = np.where(op < len(kind_of), kind_of[np.minimum(op, len(kind_of) - 1)], 0)
    start, end = start_ns + start_ps // 1000, start_ns + end_ps // 1000
    return {k: union(spans(start[seen == k], end[seen == k])) for k in (COMPUTATION, COMMUNICATION, MEMORY, INFEED)}


def executions(tables: Tables, capture: int, device: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(op_id, start, end) of every operation that a device executed in a capture, ps since its start; one of which the
    operation, its start or its duration is not known is left out."""
    events = tables.arrow(
        "op_events", ["op_id", "start_ps", "dur_ps"], [("capture", "==", capture), ("device", "==", device)]
    )
    if any(column.null_count for column in events.columns):
        events = events.drop_null()
    op, start, took = (int_column(events, name) for name in events.column_names)
    return op, start, start + took
