"""What devices waited for while they were idle: the host, the launch, or nothing that a host could have done.

Each stretch in which a device was idle is judged by what ended it (`gaps`): up to the call that launched that the host
was late, and the thread that made the call tells what it did instead (`feeding`); from the call's begin to the start on
the device it was the launch; where the call had been done before, it was the device's own. The stretches are those of
`overlap` over the same window, so its idle time is the sum of all.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from analyzers.base import Facts
from analyzers.device.activity import WINDOWS, Activity, activities
from analyzers.device.host_work import ThreadWork
from analyzers.device.launches.calls import calls
from analyzers.device.launches.feeding import BETWEEN_KERNELS, FED, reasons
from analyzers.device.launches.gaps import BETWEEN, DELAY, Gaps, gaps_of
from analyzers.device.launches.seen import Launched, captures_of, launched
from analyzers.device.launches.streams import streams
from analyzers.device.overlap import records
from analyzers.device.waiting import Fetches, host_fetches
from analyzers.intervals import Spans, idle, joined, length, outside, overlap_with, paint, spans, union
from analyzers.time.booked import Booked, booked
from errors import QuestionError
from errors.options import Option
from runs.tables import Tables, frame

OPTIONS: tuple[Option, ...] = (
    Option("window", WINDOWS, None, "what time is counted over; default: steps where known, else operations"),
)
MOST_WAITED = 20
INPUT, DELAYED = "input_wait", "launch_delay"
UNEXPLAINED = "not_told"
KINDS = (*FED[:-1], DELAYED, BETWEEN_KERNELS, INPUT, UNEXPLAINED)
"""What a device waited for, as the columns of `devices` name it."""
WAITED = ("operation", "category", "source", "gaps", "idle_s", "late_s", "delay_s", "between_s")


@dataclass(frozen=True, kw_only=True)
class LaunchesResult:
    """`devices`: one row per device: host, device, window_s, busy_s, idle_s, late_s, launches, executions, told_share,
    then `<kind>_s` for each of KINDS.

    idle_s          nothing ran; = the sum of all kinds, and `idle_s` of `overlap` over the same window
    input_wait_s    of it: the host fetched data
    late_s          of the rest: the call that launched what came next had not begun. Its parts, by what the thread did
                    that made the call: host_code_s (code that no event marks), waiting_s (for the device),
                    launching_s (operators of a framework and calls that launch), logging_s, and so on
    launch_delay_s  the call had begun and the device had not
    between_kernels_s  the call was done before the device fell idle
    not_told_s      the profile holds neither the call nor what the host did
    told_share      executions of which the call is known

    `streams`: one row per stream, by HTA's definitions (see `streams`). `calls`: one row per call (see `calls`).
    `waited`: what ended the most idle time, one row per operation, the most first (see WAITED); late_s, delay_s and
    between_s without what was input.
    """

    window: str
    devices: pd.DataFrame
    streams: pd.DataFrame
    calls: pd.DataFrame
    waited: pd.DataFrame
    totals: dict[str, float | None]
    ledger: Booked | None
    notes: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        return {
            "window": self.window,
            "totals": self.totals,
            "devices": records(self.devices),
            "calls": records(self.calls),
            "waited": records(self.waited),
            "streams": records(self.streams),
            "ledger": self.ledger and self.ledger.to_dict(),
            "notes": list(self.notes),
        }


@dataclass
class _Seen:
    """What is gathered device by device."""

    devices: list[dict[str, Any]] = field(default_factory=list)
    streams: list[pd.DataFrame] = field(default_factory=list)
    waited: list[pd.DataFrame] = field(default_factory=list)
    calls: list[Launched] = field(default_factory=list)
    windows: set[str] = field(default_factory=set)


def analyze(tables: Tables, facts: Facts, options: dict[str, Any]) -> LaunchesResult:
    """Why each device was idle. Raises QuestionError where no profile tells what launched what a device executed."""
    if not tables.rows("launches"):
        raise QuestionError(
            "no input tells which call launched what the devices executed",
            advice="Add a trace of torch.profiler (*.pt.trace.json) with activities CPU and CUDA, a profile of JAX on "
            "a GPU (*.xplane.pb), an export of Nsight Systems, or one of rocprofv3 with --hip-trace and "
            "--kernel-trace.",
        )
    seen, fetches = _Seen(), host_fetches(tables)
    work: dict[int, ThreadWork] = {}
    for activity in activities(tables):
        windows, name = activity.windows(options.get("window"))
        parts = [
            (launched(tables, c, s, activity.device), work.setdefault(c, ThreadWork(tables, c, s)))
            for c, s in captures_of(tables, activity.host)
        ]
        parts = [(ran, threads) for ran, threads in parts if len(ran.start)]
        if not len(windows.start) or not any(ran.known.any() for ran, _ in parts):
            continue
        seen.windows.add(name)
        _enter(seen, tables, activity, windows, parts, fetches)
    if not seen.devices:
        _raise_nothing(options)
    devices = pd.DataFrame(seen.devices)
    return LaunchesResult(
        window=" and ".join(sorted(seen.windows)),
        devices=devices,
        streams=pd.concat(seen.streams, ignore_index=True),
        calls=calls(seen.calls),
        waited=_most_waited(seen.waited),
        totals=_totals(devices),
        ledger=booked(tables, facts),
        notes=_notes(devices),
    )


def _raise_nothing(options: dict[str, Any]) -> NoReturn:
    if options.get("window") == "steps":
        raise QuestionError("no profile of this run has steps", advice="Ask for the window `operations`.")
    raise QuestionError(
        "no profile of this run shows what a device did",
        advice="Add a profile that was captured while the steps ran.",
    )


def _enter(
    seen: _Seen,
    tables: Tables,
    activity: Activity,
    windows: Spans,
    parts: list[tuple[Launched, ThreadWork]],
    fetches: Fetches,
) -> None:
    busy = union(joined([activity.computation, activity.communication, activity.memory]))
    free = idle(busy, windows)
    own = fetches.of(activity.host, activity.device)
    fed = union(joined([activity.infeed, fetches.of_job if own is None else own]))
    layers: dict[str, list[Spans]] = {kind: [] for kind in KINDS}
    for ran, threads, inner in _apart(parts, free):
        gaps = gaps_of(ran, inner)
        for kind, when in reasons(gaps, ran, threads).items():
            layers[kind].append(when)
        layers[DELAYED].append(gaps.of(DELAY))
        seen.waited.append(_waited(tables, ran, gaps, fed))
        where = {"host": activity.host, "device": activity.device, "capture": ran.capture}
        seen.streams.append(streams(ran).assign(**where))
        seen.calls.append(ran)
    layers[INPUT].append(fed)
    amounts = _painted(free, {kind: union(joined(when)) for kind, when in layers.items()})
    executions = sum(len(ran.start) for ran, _ in parts)
    told = sum(int(ran.known.sum()) for ran, _ in parts)
    late = sum(s for kind, s in amounts.items() if kind in FED and kind != BETWEEN_KERNELS)
    seen.devices.append(
        {
            "host": activity.host,
            "device": activity.device,
            "window_s": length(windows) / 1e9,
            "busy_s": float(overlap_with(busy, windows).sum()) / 1e9,
            "idle_s": length(free) / 1e9,
            "late_s": late,
            "executions": executions,
            "told_share": told / executions,
            **{f"{kind}_s": seconds for kind, seconds in amounts.items()},
        }
    )


def _apart(parts: list[tuple[Launched, ThreadWork]], free: Spans) -> list[tuple[Launched, ThreadWork, Spans]]:
    """Idle stretches by capture: each belongs to the last capture that had begun to execute, the first to the first."""
    begins = np.array([int(ran.start[0]) for ran, _ in parts])
    which = np.maximum(np.searchsorted(begins, free.start, side="right") - 1, 0)
    return [(ran, work, Spans(free.start[which == k], free.end[which == k])) for k, (ran, work) in enumerate(parts)]


def _painted(free: Spans, layers: Mapping[str, Spans]) -> dict[str, float]:
    """Seconds of the idle stretches by kind; together they are those stretches, exactly."""
    if not len(free.start):
        return dict.fromkeys(KINDS, 0.0)
    codes = {kind: code for code, kind in enumerate(KINDS)}
    first, last = int(free.start[0]), int(free.end[-1])
    busy = outside(spans([first], [last]), free)
    told = [(codes[kind], layers[kind]) for kind in KINDS if kind != UNEXPLAINED]
    painting = paint(first, last, [*told, (len(KINDS), busy)], ground=codes[UNEXPLAINED])
    return dict(zip(KINDS, (painting.amounts(len(KINDS) + 1)[:-1] / 1e9).tolist(), strict=True))


def _waited(tables: Tables, ran: Launched, gaps: Gaps, fed: Spans) -> pd.DataFrame:
    """Idle time by the operation that ended it, ns; rows of `_most_waited`."""
    some = gaps.next >= 0
    not_fed = [_less(Spans(a, b), fed) for a, b in ((gaps.start, gaps.late_until), (gaps.late_until, gaps.end))]
    rows = pd.DataFrame(
        {
            "op_id": ran.op[gaps.next[some]],
            "gaps": 1,
            "idle": (gaps.end - gaps.start)[some],
            "late": not_fed[0][some],
            "delay": np.where(gaps.rest == DELAY, not_fed[1], 0)[some],
            "between": np.where(gaps.rest == BETWEEN, not_fed[1], 0)[some],
        }
    )
    rows = rows.groupby("op_id", as_index=False).sum()
    ops = frame(tables, "ops", ["op_id", "op", "category", "source"], [("capture", "==", ran.capture)])
    ops = ops.astype({c: object for c in ("op", "category", "source")})
    return rows.merge(ops.dropna(subset=["op_id"]).drop_duplicates("op_id"), on="op_id", how="left")


def _less(stretches: Spans, other: Spans) -> np.ndarray:
    return stretches.end - stretches.start - overlap_with(other, stretches)


def _most_waited(parts: list[pd.DataFrame]) -> pd.DataFrame:
    rows = pd.concat(parts, ignore_index=True)
    rows = rows.groupby(["op", "category", "source"], as_index=False, dropna=False)[
        ["gaps", "idle", "late", "delay", "between"]
    ].sum()
    rows = rows.sort_values(["idle", "gaps"], ascending=False, kind="stable").head(MOST_WAITED)
    texts = {name: rows[name].astype(object).where(rows[name].notna(), None) for name in ("op", "category", "source")}
    seconds = {f"{name}_s": rows[name] / 1e9 for name in ("idle", "late", "delay", "between")}
    told = {"operation": texts["op"], "category": texts["category"], "source": texts["source"], "gaps": rows["gaps"]}
    return pd.DataFrame({**told, **seconds}).reset_index(drop=True)[list(WAITED)]


def _totals(devices: pd.DataFrame) -> dict[str, float | None]:
    names = ("window_s", "busy_s", "idle_s", "late_s", *(f"{kind}_s" for kind in KINDS))
    sums: dict[str, float | None] = {name: float(devices[name].sum()) for name in names}
    whole = sums["window_s"] or 0.0
    shares = {f"{name.removesuffix('_s')}_share": (sums[name] or 0.0) / whole if whole else None for name in names[1:4]}
    return {**sums, **shares}


def _notes(devices: pd.DataFrame) -> tuple[str, ...]:
    notes = [
        "A device is idle while nothing runs on any of its streams. HTA judges each stream by itself, so that its idle "
        "times of several streams lie over one another; they stand under streams.",
    ]
    told = float((devices["told_share"] * devices["executions"]).sum() / devices["executions"].sum())
    if told < 0.999:
        share = f"{(1 - told) * 100:.1f}".rstrip("0").rstrip(".")
        notes.append(
            f"Of {share} % of the executions no call is known: it lies before the profile began, or was not recorded."
        )
    return tuple(notes)
