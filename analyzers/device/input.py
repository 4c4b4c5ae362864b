"""Is the run bound by its input: how long the devices waited for data, and whether a longer fetch makes a longer step.

A batch that is fetched while the device works costs nothing, however long it takes. So a fetch is not a wait: a wait
is time in which a fetch (or an infeed) runs and the device does nothing else. Where no profile shows
that, steps with a long fetch are held against the others: if they are longer by as much, the fetch is exposed.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts
from analyzers.device.activity import Activity, activities, profiled_steps, steps_of
from analyzers.device.input_stalls import mark_stalls, slope_of
from analyzers.device.job_fetches import add_job_fetches
from analyzers.device.waiting import JOB, fetches_of, host_fetches
from analyzers.flops.peak import hardware
from analyzers.intervals import Spans, joined, overlap_with, spans, union
from analyzers.time.booked import Booked, booked
from analyzers.time.history import History
from analyzers.time.job_past import steps_taken
from analyzers.time.steps import median_step_s
from errors import QuestionError
from errors import format as fmt
from errors.options import Option
from runs.tables import Tables

OPTIONS: tuple[Option, ...] = ()
BOUND_SHARE = 0.05  # of the usual step: from here on, input is what to mend first
TOLD_SHARE = 0.5  # of usual steps: where fewer have a fetch recorded, nothing is concluded from the others
EXPOSED_SLOPE, HIDDEN_SLOPE = 0.5, 0.2
SAME_HOST = 1.5  # times: fetches of a log and of a profile that are nearer may be of one host
HOSTS = ["host", "steps", "fetch_s", "beyond_s"]
COLUMNS = [
    "step",
    "attempt",
    "start_ns",
    "dur_s",
    "fetch_s",
    "waited_s",
    "idle_s",
    "devices",
    "kept",
    "usual",
    "stalled",
    "extra_s",
]


@dataclass(frozen=True, kw_only=True)
class InputResult:
    """`verdict`: bound, stalls, hidden (a fetch costs nothing) or unknown; `input_bound`: True, False, None (unknown).

    `fetches_told`: of usual steps, the share in which a fetch is recorded, or a profile looked. Below a half, that the
    others waited for none is not concluded: a job may note the few fetches before its first step and no other.

    `rows`: one row per step taken, in order of time: step, attempt, start_ns, dur_s (to the start of the next), fetch_s
    (of the slowest host), waited_s and idle_s (mean over the devices that a profile saw), devices, kept, usual (kept,
    plausible and not the first of its attempt), stalled, extra_s (by how much the fetch made it longer than usual).

    waited_s        chip-seconds that devices waited for input in kept steps; in steps that no profile saw: of stalls
                    only. None where nothing tells
    waited_share    of the chip-seconds of those steps; `usual_waited_share`: in the median usual step
    slope           seconds that a step gets longer per second of fetch beyond the median, with a 95 % bootstrap
                    interval
    at_most_share   of profiled time without computing, communication or copies: waiting cannot be more than that
    median_step_s   as all questions have it; fed_step_s: the same by `rows`, with the fetch of each step inside
    hosts           host, steps, fetch_s, beyond_s: of each host that a profile saw, and of the one that wrote the
                    job's own entries (host ""), its median fetch in usual steps that were profiled, and by how much its
                    fetches were longer than the longest of other hosts, summed over the steps that it shows (of others
                    that do not show a step, their median counts)
    ledger          what the ledger books of kept steps; None where it books no device's time
    """

    verdict: str
    rows: pd.DataFrame
    waited_s: float | None
    waited_share: float | None
    usual_waited_share: float | None
    at_most_share: float | None
    median_fetch_s: float | None
    median_step_s: float | None
    fed_step_s: float | None
    slope: float | None
    slope_low: float | None
    slope_high: float | None
    stall_chip_seconds: float
    fetches_told: float = 0.0
    ledger: Booked | None = None
    hosts: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=HOSTS))
    notes: tuple[str, ...] = field(default=())

    @property
    def input_bound(self) -> bool | None:
        return None if self.verdict == "unknown" else self.verdict == "bound"

    @property
    def stalls(self) -> pd.DataFrame:
        return self.rows[self.rows["stalled"]]

    def to_dict(self) -> dict[str, Any]:
        stalls = self.stalls[["step", "start_ns", "extra_s"]]
        return {
            "input_bound": self.input_bound,
            "verdict": self.verdict,
            "waited_share": self.waited_share,
            "waited_s": self.waited_s,
            "usual_waited_share": self.usual_waited_share,
            "at_most_share": self.at_most_share,
            "median_fetch_s": self.median_fetch_s,
            "median_step_s": self.median_step_s,
            "fed_step_s": self.fed_step_s,
            "ledger": self.ledger and self.ledger.to_dict(),
            "hosts": self.hosts.to_dict("records"),
            "slope": self.slope,
            "slope_interval": None if self.slope is None else [self.slope_low, self.slope_high],
            "stall_chip_seconds": self.stall_chip_seconds,
            "fetches_told": self.fetches_told,
            "stalls": stalls.astype(object).where(stalls.notna(), None).to_dict("records"),
            "notes": list(self.notes),
        }


def analyze(tables: Tables, facts: Facts, options: dict[str, Any]) -> InputResult:
    """Whether input bounds the run. Raises QuestionError where no input tells of steps or of a device."""
    past = steps_taken(tables, facts)
    seen = _profiled(tables)
    if not len(past.rows) and seen.window_ns == 0:
        raise QuestionError(
            "nothing tells how long steps took or what a device did",
            advice="Add a profile, or a goodput log with data_loading entries.",
        )
    machine = hardware(tables, facts)
    rows = _rows(past, seen, tables)
    usual = rows[rows["usual"]]
    step_s, fetch_s = _median(usual["dur_s"]), _median(usual["fetch_s"])
    mark_stalls(rows, usual, step_s, fetch_s)
    slope = slope_of(usual, step_s, fetch_s)
    fed = bool(rows["fetch_s"].notna().any()) or seen.fed
    at_most_share = seen.idle_ns / seen.window_ns if seen.window_ns else None
    waited_s, whole_s = _waited(rows, machine.chips, machine.devices_per_chip, fed)
    if not len(rows) and fed:
        waited_s, whole_s = seen.waited_ns / 1e9 / machine.devices_per_chip, seen.window_ns / 1e9
        whole_s /= machine.devices_per_chip
    looked = usual["fetch_s"].gt(0).fillna(False) | (usual["devices"] > 0)
    told = float(looked.mean()) if len(usual) else 0.0
    if told < TOLD_SHARE and not waited_s and len(rows):
        waited_s = None
    share = waited_s / whole_s if waited_s is not None and whole_s else None
    shares = (usual["waited_s"] / usual["dur_s"]).dropna()
    usual_share = _median(shares) if fed else None
    stalled = rows[rows["stalled"] & rows["kept"]]
    measured = usual_share if len(rows) else share
    verdict = _verdict(fed, measured, slope, step_s, fetch_s, len(stalled) > 0, at_most_share, told >= TOLD_SHARE)
    return InputResult(
        verdict=verdict,
        rows=rows[COLUMNS],
        waited_s=waited_s,
        waited_share=share,
        usual_waited_share=usual_share,
        at_most_share=at_most_share,
        median_fetch_s=fetch_s,
        median_step_s=median_step_s(tables, facts),
        fed_step_s=step_s,
        ledger=booked(tables, facts),
        slope=slope[0] if slope else None,
        slope_low=slope[1] if slope else None,
        slope_high=slope[2] if slope else None,
        stall_chip_seconds=float(stalled["extra_s"].sum()) * machine.chips,
        fetches_told=told,
        hosts=_hosts(rows, seen.steps),
        notes=_notes(rows, fed, seen, past, verdict),
    )


@dataclass
class _Seen:
    """What profiles showed: `steps`, one row per host and step taken (host, step, start_ns, end_ns to the next start,
    fetch_ns, and sums over the host's devices: devices, waited_ns, idle_ns), and sums over all windows."""

    steps: pd.DataFrame
    devices: int = 0
    window_ns: int = 0
    idle_ns: int = 0
    waited_ns: int = 0
    fed: bool = False


def _profiled(tables: Tables) -> _Seen:
    fetches = host_fetches(tables)
    steps = _periods(profiled_steps(tables))
    for column in ("devices", "waited_ns", "idle_ns"):
        steps[column] = 0
    steps["fetch_ns"] = pd.array([pd.NA] * len(steps), dtype="Int64")
    for rows in (some for _, some in steps.groupby(["host", "device"], dropna=False)):
        own = fetches_of(fetches, rows)
        if own is not None:
            steps.loc[rows.index, "fetch_ns"] = overlap_with(own, _windows(rows))
    seen = _Seen(steps, fed=bool(fetches.every.keys() & set(steps["host"])))
    for activity in activities(tables):
        own = fetches.of(activity.host, activity.device)
        seen.fed |= own is not None and not len(steps)
        _enter(seen, activity, spans() if own is None else own)
    return seen


def _enter(seen: _Seen, activity: Activity, fetched: Spans) -> None:
    """Add one device: a wait is a fetch of its host, or an infeed, under which the device does nothing else."""
    busy = union(joined([activity.computation, activity.communication, activity.memory]))
    waiting = union(joined([busy, activity.infeed, fetched]))
    rows = steps_of(seen.steps, activity.host, activity.device)
    windows = _windows(rows)
    worked, spent = overlap_with(busy, windows), overlap_with(waiting, windows)
    seen.steps.loc[rows.index, "devices"] += 1
    seen.steps.loc[rows.index, "waited_ns"] += spent - worked
    seen.steps.loc[rows.index, "idle_ns"] += windows.end - windows.start - worked
    whole, _ = activity.windows(None)
    worked, spent = overlap_with(busy, whole), overlap_with(waiting, whole)
    width = whole.end - whole.start
    seen.devices += 1
    seen.fed |= bool(len(activity.infeed.start))
    seen.window_ns += int(width.sum())
    seen.idle_ns += int((width - worked).sum())
    seen.waited_ns += int((spent - worked).sum())


def _windows(rows: pd.DataFrame) -> Spans:
    return Spans(rows["start_ns"].to_numpy(dtype=np.int64), rows["end_ns"].to_numpy(dtype=np.int64))


def _periods(steps: pd.DataFrame) -> pd.DataFrame:
    """Profiled steps up to the start of the next one of their capture: a loop may fetch between its annotations."""
    takers = [steps["host"], steps["capture"], steps["device"]]
    after = steps["start_ns"].astype("Int64").groupby(takers, dropna=False).shift(-1)
    return steps.assign(end_ns=after.fillna(steps["end_ns"]).astype("int64").clip(lower=steps["end_ns"]))


def _rows(past: History, seen: _Seen, tables: Tables) -> pd.DataFrame:
    """Every step taken, with what profiles and the job's own log tell of its input. Where a profile saw it, its
    duration and its fetch are the profile's: a job may mark a step's start before its fetch, a trace after it."""
    rows = past.rows[past.rows["step"].notna()].reset_index(drop=True)
    ordinary = rows["kept"].astype(bool) & (rows["implausible"] == "") & ~rows["first"].astype(bool)
    out = pd.DataFrame(
        {
            "step": rows["step"].astype("int64"),
            "attempt": rows["attempt"],
            "start_ns": rows["start_ns"],
            "dur_s": rows["dur_ns"].astype("Float64") / 1e9,
            "kept": rows["kept"].astype(bool),
            "usual": ordinary & rows["dur_ns"].notna(),
        }
    )
    for name in ("fetch_s", "waited_s", "idle_s"):
        out[name] = pd.array([pd.NA] * len(rows), dtype="Float64")
    out["devices"] = 0
    if (job := host_fetches(tables).of(JOB)) is not None:
        add_job_fetches(out, rows, job, seen.steps)
    out["logged_s"] = out["fetch_s"]
    taken = _matched(rows, seen.steps)
    if (taken >= 0).any():
        by_step = seen.steps.assign(row=taken, dur_ns=seen.steps["end_ns"] - seen.steps["start_ns"])
        by_step = by_step[taken >= 0].groupby("row")
        devices = by_step["devices"].sum()
        out.loc[devices.index, "devices"] = devices
        out.loc[devices.index, "dur_s"] = by_step["dur_ns"].mean() / 1e9
        for name, ns in (("waited_s", "waited_ns"), ("idle_s", "idle_ns")):
            out.loc[devices.index, name] = by_step[ns].sum() / devices.where(devices > 0) / 1e9
        out.loc[devices.index, "fetch_s"] = by_step["fetch_ns"].max() / 1e9
    return out


def _hosts(rows: pd.DataFrame, steps: pd.DataFrame) -> pd.DataFrame:
    usual = steps[steps["step"].isin(rows.loc[rows["usual"], "step"])].dropna(subset=["fetch_ns"])
    if not len(usual):
        return pd.DataFrame(columns=HOSTS)
    by_step = usual.pivot_table(index="step", columns="host", values="fetch_ns", aggfunc="max").astype(float) / 1e9
    logged = rows.loc[rows["usual"]].drop_duplicates("step").set_index("step")["logged_s"].astype(float)
    said = logged.reindex(by_step.index)
    same = by_step.median().div(said.median()).between(1 / SAME_HOST, SAME_HOST)
    if said.notna().all() and not same.any():  # else it is a host that is there already
        by_step[""] = said
    out = pd.DataFrame({"steps": by_step.notna().sum(), "fetch_s": by_step.median()})
    usual = by_step.fillna(by_step.median())  # what a host fetched in a step that it does not show is not nothing
    next_s = np.sort(usual.to_numpy(), axis=1)[:, -2:].min(axis=1)
    beyond = by_step.sub(next_s, axis=0).clip(lower=0).sum()  # of the longest alone it is more than nothing
    return out.assign(beyond_s=beyond).reset_index(names="host")[HOSTS]


def _matched(rows: pd.DataFrame, seen: pd.DataFrame) -> np.ndarray:
    """For each profiled step of a host, the row of that step that began nearest to it; -1 where there is none."""
    timed = rows.loc[rows["start_ns"].notna() & rows["step"].isin(seen["step"].unique()), ["step", "start_ns"]]
    taken = pd.DataFrame({"row": timed.index, **timed.astype("int64").reset_index(drop=True)}).sort_values("start_ns")
    sought = seen[["step", "start_ns"]].astype("int64").assign(place=np.arange(len(seen))).sort_values("start_ns")
    found = pd.merge_asof(sought, taken, on="start_ns", by="step", direction="nearest")
    out = np.full(len(seen), -1, dtype=np.int64)
    out[found["place"]] = found["row"].fillna(-1)
    return out


def _median(values: pd.Series) -> float | None:
    values = values.dropna()
    return float(values.median()) if len(values) else None


def _waited(rows: pd.DataFrame, chips: int, per_chip: int, fed: bool) -> tuple[float | None, float]:
    """Chip-seconds waited in kept steps, and those steps' chip-seconds."""
    kept = rows[rows["kept"] & rows["dur_s"].notna()]
    seen = kept[kept["devices"] > 0]
    whole = float((seen["dur_s"] * seen["devices"]).sum()) / per_chip
    waited = float((seen["waited_s"] * seen["devices"]).sum()) / per_chip
    rest = kept[(kept["devices"] == 0) & kept["fetch_s"].notna()]
    whole += float(rest["dur_s"].sum()) * chips
    waited += float(rest["extra_s"].sum()) * chips
    return (waited if fed and len(kept) else None), whole


def _verdict(
    fed: bool,
    waited_share: float | None,
    slope: tuple[float, float, float] | None,
    step_s: float | None,
    fetch_s: float | None,
    stalls: bool,
    at_most_share: float | None,
    told: bool,
) -> str:
    """See InputResult. Measured waits come first, then what the fetch can cost at most, then steps held together."""
    if not fed:
        return "hidden" if at_most_share is not None and at_most_share < BOUND_SHARE else "unknown"
    if waited_share is not None:
        return "bound" if waited_share >= BOUND_SHARE else "stalls" if stalls else "hidden"
    if not step_s or fetch_s is None:
        return "unknown"
    if fetch_s < BOUND_SHARE * step_s:
        return "stalls" if stalls else "hidden" if told else "unknown"
    if slope and slope[1] > EXPOSED_SLOPE:
        return "bound"
    if slope and slope[2] < HIDDEN_SLOPE:
        return "hidden"
    return "stalls" if stalls else "unknown"


def _notes(rows: pd.DataFrame, fed: bool, seen: _Seen, past: History, verdict: str) -> tuple[str, ...]:
    notes = []
    if unnumbered := int(past.rows["step"].isna().sum()):
        notes.append(f"{unnumbered:,} of the steps that were taken have no number: they are left out here.")
    if not fed:
        notes.append(
            "No input says when the training loop waited for a batch: record data_loading in the goodput log, "
            'or wrap the fetch in jax.profiler.TraceAnnotation("data_loading") while profiling.'
        )
        if seen.window_ns:
            notes.append(
                "A device that waits for input does nothing else: the wait cannot exceed the time in which it does "
                "nothing."
            )
    elif seen.devices:
        notes.append(
            "A wait is time in which the host fetches data (or the device takes it in) and the device does "
            "nothing else. Where one host's input is late, the others wait for it in their "
            "collectives: that counts as waiting for a rank, and is in the steps' extra seconds."
        )
    if fed and (unseen := int((rows["devices"] == 0).sum())):
        notes.append(
            f"{fmt.count(unseen, 'step was', 'steps were')} not profiled: only stalls are counted there, by how much "
            "fetch and step exceed the usual ones."
        )
    if len(rows):
        notes.append(
            f"Steps are taken from {past.origin}; a step lasts until the next one starts. The first of each "
            "attempt, lost and implausible ones are left out of medians and slope."
        )
    notes += past.notes
    if verdict == "hidden" and fed:
        notes.append("A batch that arrives within a step hides behind it: storage need be no faster than that.")
    return tuple(notes)
