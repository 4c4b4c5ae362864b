"""Modules: which part of the model takes the devices' time, and which part wastes it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts
from analyzers.device.modules.exposed import exposed
from analyzers.device.modules.fold import folded, spread
from analyzers.device.modules.tree import AT, MEASURES, Node, Row, tree_of
from analyzers.device.op_units import UNIT_OPTIONS, Units, op_units
from analyzers.device.roofline import place
from analyzers.device.roofs import ROOF_OPTIONS, Roof, reached_roof, spec_roof
from analyzers.device.waste import SPENT, spent
from errors.numbers import Number
from errors.options import Option
from runs.scopes import MOST_LEVELS
from runs.tables import Tables

_LEVELS = Number(1, MOST_LEVELS, whole=True)
DEPTH = Option("depth", _LEVELS, 12, "levels of modules listed; deeper ones count to the last")
FOLD = Option("fold", ("layers", "none"), "layers", "modules that repeat as one row for all of them, or each alone")
OPTIONS: tuple[Option, ...] = (DEPTH, FOLD, *UNIT_OPTIONS, *ROOF_OPTIONS)
DIRECTED = ("forward", "backward", "recompute")
ROW_KEYS = (
    "path",
    "parent",
    "name",
    "depth",
    "told",
    "copies",
    "seconds",
    "own_seconds",
    "share",
    "forward_seconds",
    "backward_seconds",
    "recompute_seconds",
    "other_pass_seconds",
    "at_roof_seconds",
    "wasted_seconds",
    "communication_seconds",
    "unknown_seconds",
    "wasted_share",
    "exposed_communication_seconds",
    "flops",
    "recomputed_flops",
    "executions",
    "least_copy_seconds",
    "median_copy_seconds",
    "longest_copy_seconds",
    "slowest_copy",
)
_ANY_ROOF = 1.0


@dataclass(frozen=True, kw_only=True)
class ModulesResult:
    """`rows`: one row per module, parents before children, siblings by time; the first is the whole model. Columns:

    path, parent (path of the module around it; None of the first), name, depth (0: all), told (whether the profile
    names it: False of what has no module, and of the categories that this is told apart by), copies (alike modules that
    it stands for, else 1), seconds (device time of all in it) = own_seconds + those of its children; share (of the
    first row); forward_, backward_, recompute_ and other_pass_seconds, which are its seconds by pass;
    at_roof_, wasted_, communication_ and unknown_seconds (see `waste.py`), which are its seconds as well (modelled:
    wasted is NaN); wasted_share (wasted / seconds); exposed_communication_seconds (NaN where nothing tells when
    operations ran); flops (of forward and backward, NaN
    where none are known), recomputed_flops; executions (of operations); least_, median_ and longest_copy_seconds and
    slowest_copy, its path where it stands out.
    """

    rows: pd.DataFrame
    device_seconds: float | None
    told_seconds: float
    basis: str
    roof: Roof
    devices: int
    device_steps: int | None
    folded: bool
    depth: int
    notes: tuple[str, ...] = field(default=())

    @property
    def timed(self) -> bool:
        return self.device_seconds is not None

    def to_dict(self) -> dict[str, Any]:
        whole = self.rows.iloc[0]
        return {
            "device_seconds": self.device_seconds,
            "told_share": self.told_seconds / whole["seconds"] if whole["seconds"] > 0 else None,
            "modules": _records(self.rows),
            "time_basis": self.basis,
            "devices": self.devices,
            "device_steps": self.device_steps,
            "folded": self.folded,
            "depth": self.depth,
            "peak_flops_per_s": self.roof.flops and self.roof.flops.per_s,
            "hbm_bytes_per_s": self.roof.bytes and self.roof.bytes.per_s,
            "notes": list(self.notes),
        }


def _records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    plain = rows.astype(object).where(rows.notna(), None)
    return [{str(k): v for k, v in row.items()} for row in plain.to_dict("records")]


def analyze(tables: Tables, facts: Facts, options: dict[str, Any]) -> ModulesResult:
    """The devices' time by module. Raises QuestionError where the run has no operations and for options that cannot
    be."""
    units = op_units(tables, facts, options)
    spec, notes = spec_roof(tables, facts, options)
    reached, beyond = reached_roof(units.rows[units.rows["kind"] == "work"], spec)
    roof = spec.filled(reached)
    timed = units.seconds is not None
    talking = exposed(tables, options) if timed and (options.get("line") or "compute") == "compute" else {}
    tree = tree_of((*_rows(units, roof), *_talk(talking)), options["depth"])
    shown = folded(tree) if options["fold"] == "layers" else tree
    placed = not timed or not _without_times(tables)
    rows = pd.DataFrame(list(_listed(shown, timed, placed)), columns=list(ROW_KEYS))
    told = sum(float(c.whole[0]) for c in tree.children.values() if c.told)
    return ModulesResult(
        rows=rows,
        device_seconds=units.seconds,
        told_seconds=told,
        basis=units.basis if timed else "modelled",
        roof=roof,
        devices=units.devices,
        device_steps=units.device_steps,
        folded=options["fold"] == "layers",
        depth=options["depth"],
        notes=(*units.notes, *notes, *beyond, *_notes(told, shown, timed)),
    )


def _without_times(tables: Tables) -> bool:
    """Whether nothing tells what ran beside a collective: a profile that says how long operations took, not when."""
    starts = tables.arrow("captures", ["start_ns"])["start_ns"]
    return len(starts) > 0 and starts.null_count == len(starts) and not tables.rows("op_events")


def _rows(units: Units, roof: Roof) -> Iterator[Row]:
    """The operations of every scope, with MEASURES."""
    placed = place(units.placed, roof, _ANY_ROOF)
    parts = spent(placed)
    seconds = parts.sum(axis=1)
    amounts = pd.DataFrame(0.0, index=placed.index, columns=list(MEASURES))
    amounts["seconds"], amounts["executions"] = seconds, units.placed["count"]
    for direction in DIRECTED:
        amounts[f"{direction}_seconds"] = seconds.where(units.placed["direction"] == direction, 0.0)
    amounts[list(SPENT)] = parts
    flops = units.placed["flops"].astype(float)
    again = (units.placed["direction"] == "recompute").to_numpy()
    amounts["flops"] = flops.fillna(0.0).mask(again, 0.0)
    amounts["recomputed_flops"] = flops.fillna(0.0).where(again, 0.0)
    amounts["counted"] = flops.notna().astype(float)
    texts = (units.placed[name].tolist() for name in ("scope", "category", "op", "shape"))
    for scope, category, op, shape, vector in zip(*texts, amounts.to_numpy(dtype=float), strict=True):
        yield Row(scope or None, category or "other", op or "", shape or "", vector)


def _talk(talking: Mapping[str | None, float]) -> Iterator[Row]:
    for scope, seconds in talking.items():
        vector = np.zeros(len(MEASURES))
        vector[AT["exposed_communication_seconds"]] = seconds
        yield Row(scope, "collective", "", "", vector)


def _listed(root: Node, timed: bool, placed: bool) -> Iterator[dict[str, Any]]:
    total = float(root.whole[AT["seconds"]])
    for node, depth in root.walk():
        m: dict[str, float] = dict(zip(MEASURES, node.whole.tolist(), strict=True))
        copies = spread(node, total)
        yield {
            **{key: m[key] for key in ROW_KEYS if key in m},
            "path": node.path,
            "parent": node.path.rpartition("/")[0] if depth else None,
            "name": node.name or "all operations",
            "depth": depth,
            "told": node.told,
            "copies": len(node.copies) or 1,
            "own_seconds": float(node.own[AT["seconds"]]),
            "share": m["seconds"] / total if total > 0 else np.nan,
            "other_pass_seconds": max(m["seconds"] - sum(m[f"{d}_seconds"] for d in DIRECTED), 0.0),
            "exposed_communication_seconds": m["exposed_communication_seconds"] if placed else np.nan,
            "wasted_seconds": m["wasted_seconds"] if timed else np.nan,
            "wasted_share": m["wasted_seconds"] / m["seconds"] if timed and m["seconds"] > 0 else np.nan,
            "flops": m["flops"] if m["counted"] else np.nan,
            "recomputed_flops": m["recomputed_flops"] if m["counted"] else np.nan,
            "executions": int(m["executions"]),
            **dict(
                zip(
                    ("least_copy_seconds", "median_copy_seconds", "longest_copy_seconds", "slowest_copy"),
                    copies or (np.nan, np.nan, np.nan, None),
                    strict=True,
                )
            ),
        }


def _notes(told: float, root: Node, timed: bool) -> list[str]:
    whole = root.whole
    total, unknown = float(whole[AT["seconds"]]), float(whole[AT["unknown_seconds"]])
    notes = ["A fused operation belongs to the module that the compiler names it by, whatever else went into it."]
    if not told:
        notes.append(
            "No operation of this run says which module it came from. Of PyTorch: profile with with_stack=True and "
            "with_modules=True; of JAX: jax.named_scope, or modules of Flax; for Nsight Systems: NVTX ranges. "
            "A run that an earlier version read has to be ingested with --again."
        )
    if timed and total > 0:
        notes.append(
            f"Waste is not known of {unknown / total * 100:.3g} % of the time: work that nobody counts, copies to and "
            "from the host, and what shows more than its roof allows."
        )
    return notes
