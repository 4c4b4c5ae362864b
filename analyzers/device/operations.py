"""Top operations: what devices spent their time on, by operation, kind, source line or program."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts
from analyzers.device.op_details import EXECUTION, TEXTS, Extremes, executions, extremes_of, recomputed_share, texts
from analyzers.device.op_units import UNIT_OPTIONS, Units, op_units
from analyzers.device.roofline import place, records
from analyzers.device.roofs import ROOF_OPTIONS, Roof, reached_roof, spec_roof
from analyzers.device.tensor_cores import Products, products
from analyzers.device.waste import wasted_by_unit
from errors import QuestionError
from errors.numbers import COUNT
from errors.options import Option
from runs.tables import Tables

BY = ("op", "category", "source", "module")
TOP = 200
OPTIONS: tuple[Option, ...] = (
    Option("by", BY, "op", "what a row is: an operation of a program, a category, a source line, or an HLO module"),
    Option("top", COUNT, TOP, "rows listed; the rest are summed in `others`"),
    *UNIT_OPTIONS,
    *ROOF_OPTIONS,
)
ROW_KEYS = (
    "module",
    "op",
    "category",
    "source",
    "shape",
    "ops",
    "count",
    "self_seconds",
    "total_seconds",
    "share",
    "flops",
    "bytes",
    "flops_per_s",
    "bytes_per_s",
    "roofed_seconds",
    "roof_seconds",
    "roof_share",
    "above_seconds",
    "wasted_seconds",
    "recomputed_share",
    *EXECUTION,
    "scope",
    *TEXTS,
)
_NAMES = ("module", "op", "category", "source", "shape")
_ANY_ROOF = 1.0  # every operation is held against its roof here, however far below it is


@dataclass(frozen=True, kw_only=True)
class OpsResult:
    """`rows`: one row per `by`, longest first; `by_category`: one per category, whatever `by` is. Columns:

    module, op, category, source, shape (None where a row has several), ops (operations in it), count (executions, all
    devices), self_seconds (without what is nested in it), total_seconds (with it), share (of device_seconds; modelled
    roof seconds where nothing was timed), flops and bytes (of all executions; NaN: not known), flops_per_s and
    bytes_per_s (of one device, over the time of the operations of which they are known), roofed_seconds (the part of
    self_seconds in operations that have a roof), roof_seconds (the least those would take at the specified roofs),
    roof_share (the latter by the former), above_seconds (the part of self_seconds in operations that show more than
    their roof allows: they count as having none in rows of several operations), wasted_seconds (see `waste.py`; NaN
    where it is known of no part), recomputed_share (of its time, what is computed again for the backward pass; NaN:
    not told), mean_, least_ and longest_execution_seconds (of one execution, with what is nested in it), scope (the
    module or name scope where most of its time is) and TEXTS, which are told of operations alone: framework_op (what
    the framework calls it or what launched it), kernel, launch_shape (grid and block of most launches), hlo.

    `products`: the matrix products of a GPU by the unit that they ran on; None where that cannot be told.
    """

    rows: pd.DataFrame
    by_category: pd.DataFrame
    by: str
    top: int
    device_seconds: float | None
    basis: str
    roof: Roof
    devices: int
    device_steps: int | None
    line: str
    products: Products | None
    notes: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        rest = self.rows.iloc[self.top :]
        return {
            "device_seconds": self.device_seconds,
            "rows": records(self.rows.head(self.top)),
            "by_category": records(self.by_category),
            "by": self.by,
            "line": self.line,
            "time_basis": self.basis,
            "others": {
                "rows": len(rest),
                "self_seconds": float(rest["self_seconds"].fillna(0.0).sum()),
                "share": float(rest["share"].fillna(0.0).sum()),
            },
            "devices": self.devices,
            "device_steps": self.device_steps,
            "peak_flops_per_s": self.roof.flops and self.roof.flops.per_s,
            "hbm_bytes_per_s": self.roof.bytes and self.roof.bytes.per_s,
            "matrix_products": self.products and self.products.to_dict(self.top),
            "notes": list(self.notes),
        }


def analyze(tables: Tables, facts: Facts, options: dict[str, Any]) -> OpsResult:
    """The operations by time. Raises QuestionError where the run has none and for options that cannot be."""
    if options["top"] < 0:
        raise QuestionError(f"top={options['top']}", expected="a number of rows, 0 or more")
    units = op_units(tables, facts, options)
    spec, notes = spec_roof(tables, facts, options)
    reached, beyond = reached_roof(units.rows[units.rows["kind"] == "work"], spec)
    roof = spec.filled(reached)
    placed, parts = (place(r, roof, _ANY_ROOF).assign(total_seconds=r["total_s"]) for r in (units.rows, units.parts))
    timed = units.seconds is not None
    by_category = grouped(parts, "category", timed)
    extremes = extremes_of(tables, units)
    waste = place(units.placed, roof, _ANY_ROOF)
    by_category = _detailed(by_category, tables, units, extremes, waste, "category")
    rows = by_category
    if options["by"] != "category":
        rows = _detailed(grouped(placed, options["by"], timed), tables, units, extremes, waste, options["by"])
    lacking = [what for what, own in (("FLOP/s", spec.flops), ("memory bandwidth", spec.bytes)) if own is None]
    if lacking:
        verb = "are" if len(lacking) > 1 else "is"
        instead = "roofs rest on the best that the run's own operations reached" if timed else "ask with chip=NAME"
        notes.append(f"The specified {' and '.join(lacking)} of this device {verb} not known: {instead}.")
    return OpsResult(
        rows=rows,
        by_category=by_category,
        by=options["by"],
        top=options["top"],
        device_seconds=units.seconds,
        basis=units.basis if timed else "modelled",
        roof=roof,
        devices=units.devices,
        device_steps=units.device_steps,
        line=options["line"],
        products=products(tables, units),
        notes=(*units.notes, "Idle time is no operation and in no row; the page Overlap tells of it.", *notes, *beyond),
    )


def grouped(placed: pd.DataFrame, by: str, timed: bool) -> pd.DataFrame:
    """The columns of `OpsResult.rows`: `placed` as it is for `op`, else summed over all with the same `by`."""
    count = np.maximum(placed["count"], 1.0)
    seconds, least, above = placed["self_seconds"], placed["roof_seconds"], placed["bound"] == "above"
    if by != "op":
        least = least.mask(above)
    sums = pd.DataFrame(
        {
            "ops": 1,
            "count": placed["count"],
            "self_seconds": seconds,
            "total_seconds": placed["total_seconds"],
            "flops": placed["flops"] * count,
            "bytes": placed["bytes"] * count,
            "roof_seconds": least,
            "flops_s": seconds.where(placed["flops"].notna()),
            "bytes_s": seconds.where(placed["bytes"].notna()),
            "roofed_s": seconds.where(least.notna()),
            "above_s": seconds.where(above, 0.0),
        }
    )
    names = placed[list(_NAMES)]
    if by != "op":
        key = placed[by].fillna("")
        sums = sums.groupby(key, sort=False).sum(min_count=1)
        each = names.groupby(key, sort=False)
        first, several = each.first(), each.nunique(dropna=False) > 1
        names = first.astype(object).where(~several, None).assign(**{by: lambda x: x.index}).reset_index(drop=True)
        sums = sums.reset_index(drop=True)
    weight = sums["self_seconds"] if timed else sums["roof_seconds"].fillna(0.0)
    total = float(weight.sum())
    rows = names.assign(
        ops=sums["ops"],
        count=sums["count"],
        self_seconds=sums["self_seconds"],
        total_seconds=sums["total_seconds"],
        share=weight / total if total > 0 else np.nan,
        flops=sums["flops"],
        bytes=sums["bytes"],
        flops_per_s=_over(sums["flops"], sums["flops_s"]),
        bytes_per_s=_over(sums["bytes"], sums["bytes_s"]),
        roofed_seconds=sums["roofed_s"],
        roof_seconds=sums["roof_seconds"],
        roof_share=_over(sums["roof_seconds"], sums["roofed_s"]),
        above_seconds=sums["above_s"],
        key=placed.index if by == "op" else names[by],
    )
    return rows.sort_values("share", ascending=False, kind="stable", ignore_index=True)


def _detailed(
    rows: pd.DataFrame, tables: Tables, units: Units, extremes: Extremes, waste: pd.DataFrame, by: str
) -> pd.DataFrame:
    """All columns of `OpsResult.rows`; `waste`: the units as they are placed. What is wasted on an operation counts to
    its own category, whatever its other kernels are, so that it adds up to the same everywhere."""
    of_unit = units.rows[by].fillna("") if by != "op" else pd.Series(np.arange(len(units.rows)))
    key = units.members["unit"].map(of_unit)
    ran = units.members["category"].astype(object).fillna("") if by == "category" else key
    wasted = wasted_by_unit(waste, units.placed["unit"].map(of_unit))
    rows = rows.assign(
        wasted_seconds=rows["key"].map(wasted), recomputed_share=rows["key"].map(recomputed_share(units, ran))
    )
    rows = rows.join(executions(units, extremes, ran), on="key")
    alone = by == "op"
    rows = rows.assign(scope=rows["key"].map(units.rows["scope"]).astype(object) if alone else None)
    rows = rows.join(texts(tables, units), on="key") if alone else rows.assign(**dict.fromkeys(TEXTS))
    return rows[list(ROW_KEYS)]


def _over(amount: pd.Series, seconds: pd.Series) -> pd.Series:
    return amount / seconds.where(seconds > 0)
