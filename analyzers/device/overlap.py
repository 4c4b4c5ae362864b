"""Computing, communication and idle time of each device: how much of the communication runs under computation.

Definitions are those of Holistic Trace Analysis: unions of intervals by kind of kernel (computation, communication,
memory), per device, over a window. Overlap is communication that runs at the same time as computation, as a share of
all communication; idle is the window less the union of all three kinds.

HTA's exposed communication holds waiting for other ranks, and its idle holds waiting for input. Both are split here as
the ledger splits them (`analyzers.time.device_uses`), over this question's window; what the ledger books of kept steps
stands beside it.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts
from analyzers.device.activity import WINDOWS, Activity, activities, profiled_steps, split
from analyzers.device.waiting import Waiting, host_fetches, waiting
from analyzers.intervals import Spans
from analyzers.ranks.waits import waits
from analyzers.time.booked import Booked, booked
from errors import QuestionError
from errors.numbers import FROM_ZERO
from errors.options import Option
from runs.tables import Tables

OPTIONS: tuple[Option, ...] = (
    Option("window", WINDOWS, None, "what time is counted over; default: steps where known, else operations"),
    Option("step", FROM_ZERO, None, "the step that the timeline shows; default: the one of median duration"),
)
TIMELINE_DEVICES = 48  # rows that a screen can show
TIMELINE_CELLS = 4000
SECONDS = {
    "window_s": "width",
    "compute_s": "computing",
    "communication_s": "communicating",
    "overlapped_s": "overlapped",
    "exposed_s": "exposed",
    "memory_s": "remembering",
    "copies_s": "copying",
    "idle_s": "idle",
}
AS_THE_LEDGER = {
    "exposed_communication_s": "communication",
    "communication_or_wait_s": "untold",
    "straggler_wait_s": "ranks",
    "input_wait_s": "input",
    "device_idle_s": "idle",
}
ALL_SECONDS = (*SECONDS, *AS_THE_LEDGER)
IDLE, INPUT, COPYING, EXPOSED, UNTOLD, WAITING, COMPUTING, OVERLAPPED = (
    "idle",
    "input",
    "copies",
    "exposed",
    "untold",
    "waiting",
    "compute",
    "overlapped",
)
CELLS = (IDLE, INPUT, COPYING, EXPOSED, UNTOLD, WAITING, COMPUTING, OVERLAPPED)


@dataclass(frozen=True, kw_only=True)
class OverlapResult:
    """`devices`: one row per device: host, device and the columns of ALL_SECONDS, then `overlap_share`.

    window_s        the time looked at (see `window`)
    compute_s       at least one computation ran
    communication_s at least one collective ran; = overlapped_s (under computation) + exposed_s (under none)
    memory_s        at least one copy ran; copies_s is the part under neither computation nor communication
    idle_s          none of the three; window_s = compute_s + exposed_s + copies_s + idle_s
    overlap_share   overlapped_s / communication_s; null without communication

    By the ledger's definitions, over the same window:

    exposed_communication_s + communication_or_wait_s + straggler_wait_s = exposed_s   after the last rank came; not
                            known which; before it
    input_wait_s + device_idle_s = idle_s      while the host fetched data, or the device took it in; no known reason

    `steps`: one row per step taken: step, taken (0: the first time), start_ns (earliest), devices, and the columns
    above as means over the devices that a profile saw in it.
    `timeline`: cells of `timeline_step` (null: of the whole window): host, device, kind (see CELLS), start_s (since the
    host's own start of the step), dur_s. What a cell is too short to show counts to the kind that fills most of it.
    `totals`: ALL_SECONDS summed over devices (device-seconds), and shares: overlap_share, and of the window
    compute_share, exposed_share, copies_share, idle_share and HTA's non_compute_share (exposed and copies together).
    `ledger`: what the ledger books of kept steps; None where it books no device's time.
    """

    window: str
    devices: pd.DataFrame
    steps: pd.DataFrame
    timeline: pd.DataFrame
    timeline_step: int | None
    totals: dict[str, float | None]
    ledger: Booked | None
    notes: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        return {
            "window": self.window,
            "devices": records(self.devices),
            "totals": self.totals,
            "ledger": self.ledger and self.ledger.to_dict(),
            "steps": records(self.steps),
            "notes": list(self.notes),
        }


def records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as JSON has them: what is missing is null, never NaN."""
    return rows.astype(object).where(rows.notna(), None).to_dict("records")


def analyze(tables: Tables, facts: Facts, options: dict[str, Any]) -> OverlapResult:
    """Every device's time by kind. Raises QuestionError without a profile of a device, and for a step it lacks."""
    known = profiled_steps(tables)
    step = _timeline_step(known, options.get("step"))
    last = int(known.loc[known["step"] == step, "taken"].max()) if step is not None else 0
    rows, per_step, cells, names = [], [], [], set()
    waited, fetches = waits(tables), host_fetches(tables)
    for activity in activities(tables):
        windows, name = activity.windows(options.get("window"))
        if not len(windows.start):
            continue
        names.add(name)
        why = waiting(activity, waited, fetches)
        rows.append({"host": activity.host, "device": activity.device, **_seconds(activity, why, windows)})
        if len(activity.steps):
            per_step.append(_steps(activity, why))
        if len(cells) < TIMELINE_DEVICES:
            cells.append((activity, why, _timeline_window(activity, windows, step, last)))
    if not rows and options.get("window") == "steps" and not len(known):
        raise QuestionError("no profile of this run has steps", advice="Ask for the window `operations`.")
    if not rows:
        raise QuestionError(
            "no profile of this run shows what a device did",
            advice="Add a profile (*.xplane.pb, *.pt.trace.json) that was captured while the steps ran.",
        )
    devices = pd.DataFrame(rows)
    devices["overlap_share"] = _share(devices["overlapped_s"], devices["communication_s"])
    return OverlapResult(
        window=" and ".join(sorted(names)),
        devices=devices,
        steps=_by_step(per_step),
        timeline=_timeline(cells),
        timeline_step=step,
        totals=_totals(devices),
        ledger=booked(tables, facts),
        notes=_notes(devices, names, len(known) > 0),
    )


def _seconds(activity: Activity, why: Waiting, windows: Spans) -> dict[str, float]:
    return {name: float(values.sum()) / 1e9 for name, values in _columns(activity, why, windows).items()}


def _columns(activity: Activity, why: Waiting, windows: Spans) -> dict[str, np.ndarray]:
    """Nanoseconds of each of ALL_SECONDS in each window."""
    parts = split(activity, windows)
    theirs = why.split(parts, windows)
    return {name: getattr(parts, ns) for name, ns in SECONDS.items()} | {
        name: getattr(theirs, ns) for name, ns in AS_THE_LEDGER.items()
    }


def _share(part: pd.Series, whole: pd.Series) -> pd.Series:
    return (part / whole.where(whole > 0)).astype("Float64")


def _steps(activity: Activity, why: Waiting) -> pd.DataFrame:
    """One device's steps, each split on its own."""
    steps = activity.steps
    windows = Spans(steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy())
    return pd.DataFrame(
        {
            "step": steps["step"].to_numpy(),
            "taken": steps["taken"].to_numpy(),
            "start_ns": steps["start_ns"].to_numpy(),
            **{name: values / 1e9 for name, values in _columns(activity, why, windows).items()},
        }
    )


def _by_step(parts: list[pd.DataFrame]) -> pd.DataFrame:
    columns = ["step", "taken", "start_ns", "devices", *ALL_SECONDS, "overlap_share"]
    if not parts:
        return pd.DataFrame({name: pd.Series(dtype="float64") for name in columns})
    grouped = pd.concat(parts, ignore_index=True).groupby(["step", "taken"])
    steps = grouped[list(ALL_SECONDS)].mean()
    steps["start_ns"], steps["devices"] = grouped["start_ns"].min(), grouped.size()
    steps["overlap_share"] = _share(steps["overlapped_s"], steps["communication_s"])
    return steps.reset_index().sort_values("start_ns", kind="stable", ignore_index=True)[columns]


def _totals(devices: pd.DataFrame) -> dict[str, float | None]:
    sums = {name: float(devices[name].sum()) for name in ALL_SECONDS}
    whole, talk = sums["window_s"], sums["communication_s"]
    of_window = {
        "compute_share": sums["compute_s"],
        "exposed_share": sums["exposed_s"],
        "copies_share": sums["copies_s"],
        "idle_share": sums["idle_s"],
        "non_compute_share": sums["exposed_s"] + sums["copies_s"],
    }
    shares = {name: value / whole if whole else None for name, value in of_window.items()}
    return {**sums, "overlap_share": sums["overlapped_s"] / talk if talk else None, **shares}


def _timeline_step(steps: pd.DataFrame, asked: int | None) -> int | None:
    """The step asked for, else the one of median duration that is not the first of its capture."""
    if asked is not None:
        if not (steps["step"] == asked).any():
            raise QuestionError(f"no profile saw step {asked}", expected="a step of this question's `steps`")
        return asked
    if not len(steps):
        return None
    later = steps[steps["start_ns"] > steps.groupby(["host", "capture"])["start_ns"].transform("min")]
    later = later if len(later) else steps
    duration = (later["end_ns"] - later["start_ns"]).groupby(later["step"]).mean().sort_values(kind="stable")
    return int(duration.index[len(duration) // 2])


def _timeline_window(activity: Activity, windows: Spans, step: int | None, last: int) -> tuple[int, int]:
    """Where this device's row begins and ends: the step as the job took it last, or the first window."""
    mine = activity.steps[(activity.steps["step"] == step) & (activity.steps["taken"] == last)]
    if step is None or not len(mine):
        return int(windows.start[0]), int(windows.end[0]) if step is None else int(windows.start[0])
    return int(mine["start_ns"].iloc[-1]), int(mine["end_ns"].iloc[-1])


def _timeline(rows: list[tuple[Activity, Waiting, tuple[int, int]]]) -> pd.DataFrame:
    bins = max(60, min(600, TIMELINE_CELLS // max(len(rows), 1)))
    widest = max((end - start for *_, (start, end) in rows), default=0)
    parts = [_cells(a, why, start, end, max(widest // bins, 1)) for a, why, (start, end) in rows if end > start]
    columns = ["host", "device", "kind", "start_s", "dur_s"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def _cells(activity: Activity, why: Waiting, start: int, end: int, width_ns: int) -> pd.DataFrame:
    """One device's row: cells of `width_ns`, each of the kind that fills most of it, equal neighbours joined."""
    edges = np.append(np.arange(start, end, width_ns, dtype=np.int64), end)
    cells = Spans(edges[:-1], edges[1:])
    parts = split(activity, cells)
    theirs = why.split(parts, cells)
    amounts = np.stack(
        [
            theirs.idle,
            theirs.input,
            parts.copying,
            theirs.communication,
            theirs.untold,
            theirs.ranks,
            parts.computing - parts.overlapped,
            parts.overlapped,
        ]
    )
    kind = amounts.argmax(axis=0)
    first = np.flatnonzero(np.concatenate(([True], kind[1:] != kind[:-1])))
    begin = edges[first]
    return pd.DataFrame(
        {
            "host": activity.host,
            "device": activity.device,
            "kind": [CELLS[k] for k in kind[first]],
            "start_s": (begin - start) / 1e9,
            "dur_s": (np.append(begin[1:], end) - begin) / 1e9,
        }
    )


def _notes(devices: pd.DataFrame, names: set[str], stepped: bool) -> tuple[str, ...]:
    said = {
        "steps": "Time is counted from the start of the first annotated step of each capture to the end of its last.",
        "operations": "Time is counted from the first to the last operation of each capture, as HTA counts it.",
        "capture": "Time is counted over each capture as a whole, also before its first and after its last operation.",
    }
    notes = [said[name] for name in sorted(names)]
    notes.append(
        "Kinds are unions of intervals, never sums: two collectives at once count once. HTA's communication "
        "includes waiting for the last rank, its idle time waiting for input; the ledger keeps them apart."
    )
    if not stepped:
        notes.append("The profile has no steps. With jax.profiler.StepTraceAnnotation around each, they would be here.")
    if not devices["communication_s"].any():
        notes.append("No collective ran while the profile was taken.")
    return tuple(notes)
