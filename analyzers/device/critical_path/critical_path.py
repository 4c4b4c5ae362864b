"""What the time of steps hangs on: the critical path of every step of every device, by kind, operation and rank.

The definition stands in the package's docstring. What the analyzer adds up are the chains of all steps of all devices:
a job of 4 devices and 10 steps has 40 of them, and the path time of the run is the sum of their lengths, which are the
durations of the steps. Without steps there is one chain per device and capture, from its first to its last operation.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts
from analyzers.device.activity import profiled_steps, steps_of
from analyzers.device.critical_path.example import example
from analyzers.device.critical_path.holding import Holder, holder
from analyzers.device.critical_path.kinds import EXECUTION, KINDS, NOTHING, RULES
from analyzers.device.critical_path.lanes import Executions, Lane, lanes
from analyzers.device.critical_path.replay import gains, graph
from analyzers.device.critical_path.threads import Thread, threads
from analyzers.device.critical_path.told import Told, told
from analyzers.device.critical_path.walk import Chain, Pieces, chain, pieces, starts, walked
from analyzers.device.overlap import records
from analyzers.device.waiting import host_fetches
from analyzers.intervals import Spans, overlap_with
from errors import QuestionError
from errors.numbers import FROM_ZERO
from errors.options import Option
from runs.tables import Tables

WINDOWS = ("steps", "operations")
OPTIONS: tuple[Option, ...] = (
    Option("window", WINDOWS, None, "what chains are walked over; default: steps where known, else operations"),
    Option("step", FROM_ZERO, None, "the step whose path is shown; default: the one of median duration"),
)
MOST_OPERATIONS = 30
FOREVER = 1 << 61  # ns: longer than any capture
SECONDS = tuple(f"{kind}_s" for kind in KINDS)


@dataclass(frozen=True, kw_only=True)
class CriticalPathResult:
    """`totals` (`path` in JSON): path_s (the length of all paths), paths (how many), devices, one `<kind>_s` for each
    of KINDS, which sum to path_s, and `<kind>_share` of it; inferred_s and inferred_share: links that rest on a rule
    that the trace does not tell (see `rules`); elsewhere_s: passed on another device than the one whose step it is.

    `devices`: one row per device: host, device, paths, path_s, elsewhere_s, then the kinds.
    `steps`: one row per step taken: step, taken (0: the first time), start_ns (earliest), devices, path_s and the kinds
    as means over these devices.
    `operations`: what devices executed, most on the path first: operation, category, kind, executions, on_path_s (over
    all paths), path_share (of path_s), ran_s (all its executions within the windows), critical_share (of ran_s: what
    lies on any path), off_path_s (the rest of ran_s: shortening it gives nothing while the rest stays as it is).
    `ranks`: whose links they are: host, device, held_s, held_share (of path_s), for_others_s (of the paths of others).
    `rules`: rule, told (whether the trace tells it), says, links and path_s (of the links that it leads to).
    `shorten`: what the operations most on the paths would give if they took no time, modelled (see `replay`):
    operation, category, alone_low_s to alone_high_s, and together_low_s to together_high_s with those before it.
    `holder`: whether one rank holds the others' paths (see `holding`).
    `chain`: the path of `chain_step` (null without steps) on `chain_host` and `chain_device` (see `example`): host,
    device, place, kind, operation (null on hosts), start_s (since the step's start, along the path), dur_s; it has
    `chain_links`, of which it shows those that are neighbours and alike as one.
    """

    window: str
    totals: dict[str, float | None]
    devices: pd.DataFrame
    steps: pd.DataFrame
    operations: pd.DataFrame
    ranks: pd.DataFrame
    rules: pd.DataFrame
    shorten: pd.DataFrame
    holder: Holder
    chain: pd.DataFrame
    chain_step: int | None
    chain_host: str
    chain_device: int
    chain_links: int
    notes: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        return {
            "window": self.window,
            "path": self.totals,
            "devices": records(self.devices),
            "steps": records(self.steps),
            "operations": records(self.operations),
            "ranks": records(self.ranks),
            "rules": records(self.rules),
            "shorten": records(self.shorten),
            "holder": asdict(self.holder),
            "chain_step": self.chain_step,
            "chain_host": self.chain_host,
            "chain_device": self.chain_device,
            "chain_links": self.chain_links,
            "chain": records(self.chain),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Paths:
    """Every chain: `rows`: lane, step (null without steps), taken, start_ns, end_ns; links and pieces of all."""

    rows: pd.DataFrame
    links: np.ndarray
    pieces: Pieces


@dataclass(frozen=True)
class Shown:
    """The path that is shown: its chain, step, lane, and how many links it has."""

    chain: pd.DataFrame
    step: int | None
    lane: Lane
    links: int


def analyze(tables: Tables, facts: Facts, options: dict[str, Any]) -> CriticalPathResult:
    """The critical paths. Raises QuestionError where no profile shows what a device executed."""
    found, ran = lanes(tables)
    if not found:
        raise QuestionError(
            "no profile of this run shows what a device did",
            advice="Add a profile that was captured while the steps ran.",
        )
    waited = told(tables, found, ran)
    host_threads, number, feeders = threads(tables, found, ran, _fetches(tables, found), waited.calls)
    c = chain(found, ran, waited.before, host_threads, number, feeders)
    rows = _windows(tables, found, options.get("window"))
    shown = _shown(rows, options.get("step"))
    begun = [
        starts(lane, n, ran, c, *(rows.loc[rows["lane"] == n, x].to_numpy() for x in ("start_ns", "end_ns")))
        for n, lane in enumerate(found)
    ]
    links = walked(np.concatenate(begun), ran, c)
    paths = Paths(rows, links, pieces(links, ran, host_threads))
    shorten = _shorten(found, ran, c, host_threads, waited, paths)
    mine = links[links[:, 0] == shown]
    step = rows["step"].iloc[shown]
    of = found[int(rows["lane"].iloc[shown])]
    chosen = Shown(example(mine, found, ran, host_threads), None if pd.isna(step) else int(step), of, len(mine))
    return _result(found, ran, paths, shorten, chosen)


def _shorten(
    found: list[Lane], ran: Executions, c: Chain, host_threads: list[Thread], waited: Told, paths: Paths
) -> pd.DataFrame:
    """What the operations most on paths would give: no more than they have on the steps' paths, or on those of all
    that lies before the last step's end."""
    ends = paths.rows.groupby("lane")["end_ns"].max().reindex(range(len(found)), fill_value=0).to_numpy()
    inside = _inside(found, ran, paths.rows)
    last = [starts(lane, n, ran, c, ends[n : n + 1] - FOREVER, ends[n : n + 1]) for n, lane in enumerate(found)]
    whole = _on_path(walked(np.concatenate(last), ran, c), ran, inside)
    on_path = np.maximum(whole, _on_path(paths.links, ran))
    return gains(graph(found, ran, c, host_threads, waited), found, ran, ends, on_path, inside)


def _on_path(links: np.ndarray, ran: Executions, most: np.ndarray | None = None) -> np.ndarray:
    """Ns on these paths by operation, of each execution `most` at most."""
    mine = links[links[:, 1] == EXECUTION]
    spent = mine[:, 6] - mine[:, 5]
    spent = spent if most is None else np.minimum(spent, most[mine[:, 2]])
    return np.bincount(ran.op[mine[:, 2]], spent, len(ran.operations))


def _shown(rows: pd.DataFrame, asked: int | None) -> int:
    """Which path is shown: of the step asked for, else of the one of median duration that is not the first of its
    capture; of the first device that took it. Without steps the longest."""
    if asked is not None:
        mine = _of_step(rows, asked)
        if not len(mine):
            raise QuestionError(f"no profile saw step {asked}", expected="a step of this question's `steps`")
        return int(mine[0])
    width = rows["end_ns"] - rows["start_ns"]
    if rows["step"].isna().all():
        return int(width.to_numpy().argmax())
    later = rows["start_ns"] > rows.groupby("lane")["start_ns"].transform("min")
    later &= rows["step"].notna()
    chosen = width[later] if later.any() else width[rows["step"].notna()]
    step = chosen.groupby(rows["step"]).mean().sort_values(kind="stable").index
    return int(_of_step(rows, step[len(step) // 2])[0])


def _of_step(rows: pd.DataFrame, step: int) -> np.ndarray:
    """Positions of a step's paths: that of a device without steps is of none."""
    return np.flatnonzero((rows["step"] == step).fillna(False))


def _fetches(tables: Tables, found: list[Lane]) -> list[Spans]:
    """When data was fetched for each lane's device."""
    fetches = host_fetches(tables)
    own = (fetches.of(lane.host, lane.device) for lane in found)
    return [fetches.of_job if one is None else one for one in own]


def _windows(tables: Tables, found: list[Lane], which: str | None) -> pd.DataFrame:
    """The rows of `Paths`, by lane and time."""
    known = profiled_steps(tables)
    parts = []
    for n, lane in enumerate(found):
        steps = steps_of(known, lane.host, lane.device)
        steps = steps[steps["capture"] == lane.capture]
        if which != "operations" and len(steps):
            steps = steps.assign(lane=n)
            parts.append(steps[["lane", "step", "start_ns", "end_ns", "taken"]])
        elif which != "steps":
            whole = [n], [pd.NA], [int(lane.ran.start[0])], [int(lane.ran.end.max())]
            parts.append(pd.DataFrame(dict(zip(("lane", "step", "start_ns", "end_ns"), whole, strict=True), taken=0)))
    rows = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    if len(rows):
        rows = rows[rows["end_ns"] > rows["start_ns"]].astype({"step": "Int64"})
    if not len(rows):
        raise QuestionError("no profile of this run has steps", advice="Ask for the window `operations`.")
    return rows.reset_index(drop=True)


def _result(
    found: list[Lane], ran: Executions, paths: Paths, shorten: pd.DataFrame, shown: Shown
) -> CriticalPathResult:
    by_path = _by_path(paths)
    devices = _devices(found, paths, by_path)
    return CriticalPathResult(
        window=" and ".join(sorted({"steps" if known else "operations" for known in paths.rows["step"].notna()})),
        totals=_totals(paths, devices),
        devices=devices,
        steps=_steps(paths, by_path),
        operations=_operations(found, ran, paths),
        ranks=_ranks(found, paths),
        rules=_rules(paths),
        shorten=shorten,
        holder=holder(paths.links, paths.rows, ran, *_device_of(found)),
        chain=shown.chain,
        chain_step=shown.step,
        chain_host=shown.lane.host,
        chain_device=shown.lane.device,
        chain_links=shown.links,
        notes=_notes(paths),
    )


def _by_path(paths: Paths) -> np.ndarray:
    """(paths, KINDS) ns."""
    cell = paths.links[paths.pieces.link, 0] * len(KINDS) + paths.pieces.kind
    out = np.zeros(len(paths.rows) * len(KINDS), np.int64)
    np.add.at(out, cell, paths.pieces.ns)
    return out.reshape(len(paths.rows), len(KINDS))


def _width(paths: Paths) -> np.ndarray:
    return paths.links[:, 6] - paths.links[:, 5]


def _device_of(found: list[Lane]) -> tuple[np.ndarray, list[tuple[str, int]]]:
    """The number of each lane's device, and the devices."""
    places = list(dict.fromkeys((lane.host, lane.device) for lane in found))
    return np.array([places.index((lane.host, lane.device)) for lane in found]), places


def _devices(found: list[Lane], paths: Paths, by_path: np.ndarray) -> pd.DataFrame:
    device, places = _device_of(found)
    lane = paths.rows["lane"].to_numpy()
    mine = device[lane][paths.links[:, 0]]
    away = np.where(device[paths.links[:, 3]] != mine, _width(paths), 0)
    elsewhere = np.bincount(mine, away, len(places))
    kinds = np.zeros((len(places), len(KINDS)))
    np.add.at(kinds, device[lane], by_path)
    return pd.DataFrame(
        {
            "host": [host for host, _ in places],
            "device": [device for _, device in places],
            "paths": np.bincount(device[lane], minlength=len(places)),
            "path_s": kinds.sum(axis=1) / 1e9,
            "elsewhere_s": elsewhere / 1e9,
            **{name: kinds[:, n] / 1e9 for n, name in enumerate(SECONDS)},
        }
    )


def _totals(paths: Paths, devices: pd.DataFrame) -> dict[str, float | None]:
    sums = {name: float(devices[name].sum()) for name in ("path_s", *SECONDS, "elsewhere_s")}
    guessed = np.array([not told for told, _ in RULES.values()] + [False])[paths.links[:, 4]]
    sums["inferred_s"] = float(_width(paths)[guessed].sum()) / 1e9
    whole = sums["path_s"]
    shares = {f"{name.removesuffix('_s')}_share": value / whole if whole else None for name, value in sums.items()}
    del shares["path_share"]
    return {"paths": len(paths.rows), "devices": len(devices), **sums, **shares}


def _steps(paths: Paths, by_path: np.ndarray) -> pd.DataFrame:
    rows = paths.rows.assign(path_s=by_path.sum(axis=1) / 1e9)
    rows = rows.assign(**{name: by_path[:, n] / 1e9 for n, name in enumerate(SECONDS)}).dropna(subset=["step"])
    grouped = rows.groupby(["step", "taken"])
    steps = grouped[["path_s", *SECONDS]].mean()
    steps.insert(0, "start_ns", grouped["start_ns"].min())
    steps.insert(1, "devices", grouped.size())
    return steps.reset_index().sort_values("start_ns", kind="stable", ignore_index=True)


def _operations(found: list[Lane], ran: Executions, paths: Paths) -> pd.DataFrame:
    links, width = paths.links, _width(paths)
    mine = links[:, 1] == EXECUTION
    which, spent = links[mine, 2], width[mine]
    on_path = _on_path(links, ran)
    inside = _inside(found, ran, paths.rows)
    covered = np.zeros(len(ran.start), np.int64)
    np.maximum.at(covered, which, spent)
    critical = np.minimum(covered, inside)
    rows = pd.DataFrame(
        {
            "operation": ran.operations["op"],
            "category": ran.operations["category"],
            "executions": np.bincount(ran.op[inside > 0], minlength=len(ran.operations)),
            "on_path_s": on_path / 1e9,
            "path_share": on_path / max(width.sum(), 1),
            "ran_s": np.bincount(ran.op, inside, len(ran.operations)) / 1e9,
            "off_path_s": np.bincount(ran.op, inside - critical, len(ran.operations)) / 1e9,
        }
    )
    rows["critical_share"] = ((rows["ran_s"] - rows["off_path_s"]) / rows["ran_s"].where(rows["ran_s"] > 0)).astype(
        "Float64"
    )
    return rows.sort_values(["on_path_s", "ran_s"], ascending=False, kind="stable").head(MOST_OPERATIONS)


def _inside(found: list[Lane], ran: Executions, rows: pd.DataFrame) -> np.ndarray:
    """Ns of each execution within the windows of its lane."""
    out = np.zeros(len(ran.start), np.int64)
    for n, lane in enumerate(found):
        mine = rows[rows["lane"] == n]
        windows = Spans(mine["start_ns"].to_numpy(), mine["end_ns"].to_numpy())
        out[lane.ids] = overlap_with(windows, Spans(ran.start[lane.ids], ran.end[lane.ids]))
    return out


def _ranks(found: list[Lane], paths: Paths) -> pd.DataFrame:
    device, places = _device_of(found)
    holder, width = device[paths.links[:, 3]], _width(paths)
    owner = device[paths.rows["lane"].to_numpy()][paths.links[:, 0]]
    held = np.bincount(holder, width, len(places)) / 1e9
    others = np.bincount(holder, np.where(holder != owner, width, 0), len(places)) / 1e9
    return pd.DataFrame(
        {
            "host": [host for host, _ in places],
            "device": [device for _, device in places],
            "held_s": held,
            "held_share": held / max(held.sum(), 1e-12),
            "for_others_s": others,
        }
    )


def _rules(paths: Paths) -> pd.DataFrame:
    rule = paths.links[:, 4]
    used = paths.links[:, 1] != NOTHING
    links = np.bincount(rule[used & (rule >= 0)], minlength=len(RULES))
    ns = np.bincount(rule[rule >= 0], _width(paths)[rule >= 0], len(RULES))
    rows = [
        {"rule": name, "told": told, "says": says, "links": int(links[n]), "path_s": float(ns[n]) / 1e9}
        for n, (name, (told, says)) in enumerate(RULES.items())
    ]
    return pd.DataFrame(rows)


def _notes(paths: Paths) -> tuple[str, ...]:
    return tuple(_said(paths))


def _said(paths: Paths) -> Iterator[str]:
    step = paths.rows["step"]
    if step.notna().any():
        yield "Each step of each device has a path of its own, as long as the step; all of them are added up."
    if step.isna().any():
        whose = "A device without steps" if step.notna().any() else "Paths are of no steps: each device"
        yield f"{whose} has one path, from its first to its last operation."
