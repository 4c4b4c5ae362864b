"""The roofline: how close operations come to what the device's maths and memory allow, and what that would gain."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts
from analyzers.device.counters import counters
from analyzers.device.counters import notes as counter_notes
from analyzers.device.op_units import UNIT_OPTIONS, Units, op_units
from analyzers.device.roofs import (
    CREDIBLE,
    ROOF_OPTIONS,
    Roof,
    bound_s,
    devices_per_chip,
    of_host,
    other_precisions,
    reached_roof,
    spec_roof,
)
from analyzers.subject import chip_of
from catalog.chips import chip
from errors import QuestionError
from errors.numbers import COUNT, SHARE_OF_SOME
from errors.options import Option
from runs.tables import Tables

ROOF = Option("roof", ("spec", "reached"), "spec", "the device's specified peaks, or the best that this run reached")
TOP = Option("top", COUNT, 500, "operations listed in `points`; totals are over all")
NEAR = Option("near", SHARE_OF_SOME, 0.1, "part of its roof from which on an operation counts as bound by it")
OPTIONS: tuple[Option, ...] = (ROOF, *UNIT_OPTIONS, TOP, NEAR, *ROOF_OPTIONS)

BOUNDS: dict[str, str] = {
    "compute": "at its FLOPs per byte the peak FLOP/s binds, and the operation comes near it",
    "memory": "at its FLOPs per byte the memory bandwidth binds, and the operation comes near it",
    "neither": "far below both roofs: latency, small or ill-shaped work, waiting",
    "above": "shows more than its roof allows: its FLOPs or bytes are counted too high (what stays in caches never "
    "reaches memory), or the roof is set too low",
    "communication": "a collective, waiting for peers included: the network binds, not the device",
    "asynchronous": "begins or awaits a copy that runs beside it",
    "host": "moves data between host and device: the host link binds",
    "unknown": "its FLOPs or bytes, or the roof that it needs, are not known",
}
POINT_KEYS = (
    "module",
    "op",
    "category",
    "source",
    "shape",
    "count",
    "self_seconds",
    "share",
    "flops",
    "bytes",
    "flops_per_byte",
    "flops_per_s",
    "bytes_per_s",
    "roof_seconds",
    "roof_share",
    "binds",
    "bound",
)


@dataclass(frozen=True, kw_only=True)
class RooflineResult:
    """`points`: one row per operation, longest first, with columns

    module, op, category, source, shape, count (executions on all devices), self_seconds (summed over devices; NaN where
    nobody timed them), share (of device_seconds; of roof_seconds where nothing is timed), flops and bytes (of one
    execution), flops_per_byte, flops_per_s and bytes_per_s (of one device while it runs), roof_seconds (the least it
    would take, NaN where unknown), roof_share (roof_seconds / self_seconds), binds (compute or memory: which roof is
    the lower at its FLOPs per byte), bound (see BOUNDS).

    `roof`: the one that the points are held against. `time_by_bound`: seconds by BOUNDS, together `device_seconds`, or
    roof seconds where nothing is timed. `roof_seconds`: what all operations would take with those that have a roof at
    it and all others as they are; None where nothing has one. `counters`: what the hardware counted, see
    `counters.counters`. `beyond`: what is to be said of operations that show more
    than the specified roof allows. `programs`: the same as points for whole modules.
    """

    roof: Roof
    roofs: tuple[Roof, ...]
    points: pd.DataFrame
    programs: pd.DataFrame
    whole: dict[str, Any]
    time_by_bound: dict[str, float]
    device_seconds: float | None
    roof_seconds: float | None
    basis: str
    devices: int
    device_steps: int | None
    near: float
    top: int
    beyond: tuple[str, ...]
    counters: tuple[dict[str, Any], ...] = field(default=())
    notes: tuple[str, ...] = field(default=())

    @property
    def seconds(self) -> float | None:
        """What shares are of: the time that was measured, else the modelled least time."""
        return self.roof_seconds if self.device_seconds is None else self.device_seconds

    def to_dict(self) -> dict[str, Any]:
        gain = None
        if self.device_seconds is not None and self.roof_seconds is not None:
            gain = self.device_seconds - self.roof_seconds
        return {
            "peak_flops_per_s": self.roof.flops and self.roof.flops.per_s,
            "hbm_bytes_per_s": self.roof.bytes and self.roof.bytes.per_s,
            "ridge_flops_per_byte": self.roof.ridge,
            "roof": self.roof.name,
            "roofs": [r.to_dict() for r in self.roofs],
            "points": records(self.points.head(self.top)),
            "programs": records(self.programs),
            "whole": self.whole,
            "time_by_bound": self.time_by_bound,
            "time_basis": "modelled" if self.device_seconds is None and len(self.points) else self.basis,
            "device_seconds": self.device_seconds,
            "roof_seconds": self.roof_seconds,
            "gain_seconds": gain,
            "devices": self.devices,
            "device_steps": self.device_steps,
            "near": self.near,
            "counters": list(self.counters),
            "definitions": BOUNDS,
            "notes": list(self.notes),
        }


def records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows for JSON: what is not known is None, counts are whole."""
    return [{k: _plain(k, v) for k, v in row.items()} for row in rows.to_dict("records")]


def _plain(key: str, value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    if not np.isfinite(value):
        return None
    return int(value) if key in ("count", "ops") else float(value)


def analyze(tables: Tables, facts: Facts, options: dict[str, Any]) -> RooflineResult:
    """Every operation against the roofs; of a run that shows none what the hardware counted, where it did. Raises
    QuestionError where there is neither, and for options that cannot be."""
    if not 0 < options["near"] <= 1 or options["top"] < 0:
        given = f"near={options['near']}, top={options['top']}"
        raise QuestionError(given, expected="near above 0 and at most 1, top from 0")
    counted = counters(tables)
    try:
        units = op_units(tables, facts, options)
    except QuestionError:
        if not counted or any(options.get(o.name, o.default) != o.default for o in UNIT_OPTIONS):
            raise
        return _counted_alone(counted, tables, facts, options)
    spec, roof_notes = spec_roof(tables, facts, options)
    reached, reach_notes = reached_roof(units.rows[units.rows["kind"] == "work"], spec)
    roof, chosen_notes = _chosen(spec, reached, options["roof"])
    placed = place(units.rows, roof, options["near"])
    weight = placed["self_seconds"] if units.seconds is not None else placed["roof_seconds"].fillna(0.0)
    total = float(weight.sum())
    placed["share"] = weight / total if total > 0 else np.nan
    if units.seconds is None:
        placed = placed.sort_values("share", ascending=False, kind="stable", ignore_index=True)
        weight = placed["roof_seconds"].fillna(0.0)
    by_bound = weight.groupby(placed["bound"]).sum()
    known = chip(options["chip"]) if options["chip"] else chip_of(of_host(tables, facts, options))
    roofs = (spec, reached, *other_precisions(known, spec, devices_per_chip(facts, known)))
    return RooflineResult(
        roof=roof,
        roofs=tuple(r for r in roofs if r.flops or r.bytes),
        points=placed[list(POINT_KEYS)],
        programs=_programs(placed, units.seconds is not None),
        whole=_whole(placed, units.seconds),
        time_by_bound={b: float(by_bound.get(b, 0.0)) for b in BOUNDS},
        device_seconds=units.seconds,
        roof_seconds=_at_roof(placed, units.seconds is not None),
        basis=units.basis,
        devices=units.devices,
        device_steps=units.device_steps,
        near=options["near"],
        top=options["top"],
        beyond=tuple(reach_notes),
        counters=tuple(counted),
        notes=(
            *counter_notes(counted),
            *units.notes,
            *roof_notes,
            *reach_notes,
            *chosen_notes,
            *_notes(placed, units, options["near"]),
        ),
    )


def _counted_alone(
    counted: list[dict[str, Any]], tables: Tables, facts: Facts, options: dict[str, Any]
) -> RooflineResult:
    """What counters tell of devices whose operations nothing shows."""
    spec, notes = spec_roof(tables, facts, options)
    nothing = pd.DataFrame(columns=list(POINT_KEYS), dtype=float)
    whole: dict[str, Any] = {}
    whole |= dict.fromkeys(("flops", "bytes", "self_seconds", "flops_per_byte", "flops_per_s", "bytes_per_s"))
    return RooflineResult(
        roof=spec,
        roofs=(spec,) if spec.flops or spec.bytes else (),
        points=nothing,
        programs=pd.DataFrame(columns=["module"]),
        whole=whole,
        time_by_bound=dict.fromkeys(BOUNDS, 0.0),
        device_seconds=None,
        roof_seconds=None,
        basis="unattributed",
        devices=len({(row["host"], row["device"]) for row in counted}),
        device_steps=None,
        near=options["near"],
        top=options["top"],
        beyond=(),
        counters=tuple(counted),
        notes=(*counter_notes(counted), *notes),
    )


def _chosen(spec: Roof, reached: Roof, name: str) -> tuple[Roof, list[str]]:
    """The roof asked for, what it lacks taken from the other. Raises QuestionError where neither knows anything."""
    roof = spec.filled(reached) if name == "spec" else reached.filled(spec)
    if not roof.flops and not roof.bytes:
        raise QuestionError(
            "no peak of this device is known, and no operation shows a rate",
            advice="Ask with --option chip=NAME, or with peak_flops_per_s= and hbm_bytes_per_s= of one chip.",
        )
    notes = []
    for part, what, unit, scale in (("flops", "FLOP/s", "TFLOP/s", 1e12), ("bytes", "memory bandwidth", "GB/s", 1e9)):
        own = getattr(spec if name == "spec" else reached, part)
        used = getattr(roof, part)
        if used is None:
            notes.append(f"No {what} roof is known: operations that need it have no roof.")
        elif own is None:
            notes.append(
                f"The {'specified' if name == 'spec' else 'reached'} {what} is not known; in its place: "
                f"{used.per_s / scale:.4g} {unit}, {used.source}."
            )
    return roof, notes


def place(rows: pd.DataFrame, roof: Roof, near: float) -> pd.DataFrame:
    """Rows of `Units` with rates, least seconds at the roof, and what binds them: columns of `RooflineResult.points`.

    What reaches more than CREDIBLE of its roof is `above` it, and no measure of the device. A product is held against
    the peak of the format that it ran in.
    """
    work = (rows["kind"] == "work").to_numpy()
    count = np.maximum(rows["count"].to_numpy(dtype=float), 1.0)
    seconds = rows["self_s"].to_numpy(dtype=float)
    # what an operation that is no work is said to move or compute is not done in the time it shows
    flops = np.where(work | (rows["kind"] == "uncounted"), rows["flops"].to_numpy(dtype=float), np.nan)
    moved = np.where(work | (rows["kind"] == "uncounted"), rows["bytes"].to_numpy(dtype=float), np.nan)
    least, by_memory = bound_s(np.where(work, flops / roof.pace(rows), np.nan), np.where(work, moved, np.nan), roof)
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(seconds > 0, least / seconds, np.nan)
        intensity = np.where(moved > 0, flops / moved, np.nan)
        rates = [np.where(seconds > 0, amount / seconds, np.nan) for amount in (flops, moved)]
    binds = np.where(np.isnan(least), None, np.where(by_memory, "memory", "compute"))
    bound = np.where(rows["kind"].isin(("work", "uncounted")), "unknown", rows["kind"])
    bound = np.where(np.isnan(least), bound, np.where(reach < near, "neither", binds))
    bound = np.where(reach > CREDIBLE, "above", bound)
    return pd.DataFrame(
        {
            "module": rows["module"],
            "op": rows["op"],
            "category": rows["category"],
            "source": rows["source"],
            "shape": rows["shape"],
            "count": rows["count"],
            "self_seconds": seconds,
            "flops": flops / count,
            "bytes": moved / count,
            "flops_per_byte": intensity,
            "flops_per_s": rates[0],
            "bytes_per_s": rates[1],
            "roof_seconds": least,
            "roof_share": reach,
            "binds": binds,
            "bound": bound,
        }
    )


def _at_roof(placed: pd.DataFrame, timed: bool) -> float | None:
    """Seconds with every operation at its roof, those without one as they are; no operation gets slower by it."""
    least = placed["roof_seconds"]
    if not least.notna().any():
        return None
    if not timed:
        return float(least.sum())
    return float(np.fmin(least, placed["self_seconds"]).sum())


def _programs(placed: pd.DataFrame, timed: bool) -> pd.DataFrame:
    """Whole modules: FLOPs and bytes of their operations over the time of all of them."""
    sums = _sums(placed, timed).groupby(placed["module"].fillna(""), sort=False)[["seconds", "flops", "bytes", "least"]]
    rows = sums.sum(min_count=1).reset_index()
    rows = rows.sort_values("seconds" if timed else "least", ascending=False, ignore_index=True)
    return pd.DataFrame(
        {
            "module": rows["module"],
            "self_seconds": rows["seconds"],
            "flops": rows["flops"],
            "bytes": rows["bytes"],
            "flops_per_byte": rows["flops"] / rows["bytes"].where(rows["bytes"] > 0),
            "flops_per_s": rows["flops"] / rows["seconds"].where(rows["seconds"] > 0),
            "bytes_per_s": rows["bytes"] / rows["seconds"].where(rows["seconds"] > 0),
            "roof_seconds": rows["least"],
        }
    )


def _sums(placed: pd.DataFrame, timed: bool) -> pd.DataFrame:
    count = np.maximum(placed["count"], 1.0)
    least = np.fmin(placed["roof_seconds"], placed["self_seconds"]) if timed else placed["roof_seconds"]
    return pd.DataFrame(
        {
            "seconds": placed["self_seconds"],
            "flops": placed["flops"] * count,
            "bytes": placed["bytes"] * count,
            "least": least,
        }
    )


def _whole(placed: pd.DataFrame, seconds: float | None) -> dict[str, Any]:
    """All operations as one point: their FLOPs and bytes by all their time, on the average device."""
    sums = _sums(placed, seconds is not None).sum(min_count=1)
    flops, moved = float(sums["flops"]), float(sums["bytes"])
    return {
        k: _plain(k, v)
        for k, v in {
            "flops": flops,
            "bytes": moved,
            "self_seconds": np.nan if seconds is None else seconds,
            "flops_per_byte": flops / moved if moved > 0 else np.nan,
            "flops_per_s": flops / seconds if seconds else np.nan,
            "bytes_per_s": moved / seconds if seconds else np.nan,
        }.items()
    }


def _notes(placed: pd.DataFrame, units: Units, near: float) -> list[str]:
    if units.seconds is None:
        left_out = int(placed["roof_seconds"].isna().sum())
        return (
            [
                f"{left_out} operations have no roof of the device (collectives, custom calls): they add nothing to "
                "the least time."
            ]
            if left_out
            else []
        )
    notes = [f"An operation counts as bound by its roof from {near * 100:.3g} % of it on, below that by neither."]
    elsewhere = placed[placed["roof_seconds"].isna()]
    if len(elsewhere):
        lack = f"{len(elsewhere)} operations have" if len(elsewhere) > 1 else "1 operation has"
        notes.append(
            f"{lack} no roof of the device (communication, waiting, unknown work); at the roofs such time is "
            "counted as it is."
        )
    return notes
