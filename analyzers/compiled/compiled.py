"""What the TPU compiler made of a step: does it fit, what it computes and communicates, and how fast it can be at best.

Everything is told of one chip and one step. A chip that shows as several devices holds and computes what all of them
do, so bytes and FLOPs of a device are multiplied by `devices_per_chip`; the devices run at the same time, so cycles are
those of one of them.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

import pandas as pd

from analyzers.base import Facts, fact
from analyzers.compiled.bounds import NETWORK_COLUMNS, Bounds, bounds, network, utilisation
from analyzers.compiled.floor import Floor, floor, matmul_excess
from analyzers.device.op_units import HOLDS_OTHERS
from analyzers.device.untold_kernels import untold, untold_said
from analyzers.flops.peak import hardware
from analyzers.flops.program_matmuls import once, unknown_programs
from analyzers.subject import chip_of, sequence_of
from errors import QuestionError
from errors.options import Option
from runs.tables import Tables, frame

OPTIONS: tuple[Option, ...] = ()

KINDS = ("arguments", "outputs", "temporaries", "code")  # what a program holds at its fullest, beside each other
ARGUMENT_COLUMNS = ["name", "shape", "bytes", "padded_bytes", "tax"]
OP_COLUMNS = ["op", "category", "count", "cycles", "cycles_share", "flops", "bytes", "source", "shape"]
COLLECTIVE_COLUMNS = ["kind", "axis", "bytes", "count", "operand_bytes", "group_size", "asynchronous"]
PADDED_MOST = 20  # arguments that lose most to padding, in the JSON
FACTS = (
    "model",
    "function",
    "chip",
    "chips",
    "slices",
    "devices_per_chip",
    "topology",
    "parallelism",
    "precision",
    "seq",
    "global_batch",
    "remat",
    "attention",
    "optimizer",
    "layers",
    "compiler",
    "jax",
    "compile_s",
)
ASK = "`chipledger compile MODEL --topology v6e:4x4 --mesh data=4,model=4` makes one, as does the page Compile for TPU."


@dataclass(frozen=True)
class MatmulTax:
    """What a matrix unit of `mxu` x `mxu` adds to the FLOPs of all matrix products: padded / useful - 1, as printed and
    with the better choice of operands. Shapes are those kept with the program: of the whole step before it is cut over
    devices where the compile step told them, else of one device."""

    mxu: int
    tax: float
    tax_optimistic: float


@dataclass(frozen=True, kw_only=True)
class CompiledResult:
    """What is known of one compiled step; None where the compiler did not come so far.

    `fits`: whether all of it lies in a chip's memory at once. `bytes_per_chip`: padded bytes of one chip at its
    fullest by kind (arguments, outputs, temporaries, code), all `temporaries_laid_out` (not all alive at once), the
    `peak`, and the compiler's `limit`. `flops_per_chip`: floating-point
    operations that one chip executes in a step, recomputation included: the sum over operations of FLOPs times
    executions. `estimated_cycles`: the compiler's own estimate, summed likewise over those operations that have one, of
    one device; `cycles_flops_share`: the part of the FLOPs that lies in them.

    `arguments`: one row per argument (ARGUMENT_COLUMNS; bytes of one device, logical and padded; tax = padded / logical
    - 1). `ops`: one row per operation, most cycles first (OP_COLUMNS; flops and bytes of one device in a step).
    `collectives`: one row per kind and mesh axis (COLLECTIVE_COLUMNS; `bytes`: operand bytes of one chip in a step;
    `count`: executions). `floor`: the least time of a step; `bounds`: what it asks of compute, memory and links, each
    alone; `network`: one row per collective with what leaves the chip (NETWORK_COLUMNS).
    """

    outcome: str
    message: str
    rule: str
    fits: bool | None
    bytes_per_chip: dict[str, int | None]
    flops_per_chip: float | None
    estimated_cycles: float | None
    cycles_flops_share: float | None
    arguments: pd.DataFrame
    ops: pd.DataFrame
    collectives: pd.DataFrame
    network: pd.DataFrame
    bounds: Bounds
    floor: Floor | None
    matmul_tax: MatmulTax | None
    tokens_per_s_bound: float | None
    model_flops_per_step: float | None
    mfu_bound: float | None
    facts: dict[str, Any]
    notes: tuple[str, ...] = field(default=())

    @property
    def argument_bytes(self) -> tuple[int, int] | None:
        """(logical, padded) bytes of all arguments on one device; None where the layouts are not known."""
        rows = self.arguments.dropna(subset=["bytes", "padded_bytes"])
        return (int(rows["bytes"].sum()), int(rows["padded_bytes"].sum())) if len(rows) else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "fits": self.fits,
            "bytes_per_chip": self.bytes_per_chip,
            "flops_per_chip": self.flops_per_chip,
            "estimated_cycles": self.estimated_cycles,
            "collectives": _records(self.collectives[["kind", "axis", "bytes", "count"]]),
            "padding": self._padding(),
            "seconds_bound": self.floor and self.floor.seconds,
            "bound_by": self.floor and self.floor.bound_by,
            "floor": self.floor and self.floor.to_dict(),
            "parts": {p.name: p.to_dict() for p in self.bounds.parts},
            "roof_seconds": self.floor and self.floor.roof_s,
            "tokens_per_s_bound": self.tokens_per_s_bound,
            "mfu_bound": self.mfu_bound,
            "model_flops_per_step": self.model_flops_per_step,
            "cycles_flops_share": self.cycles_flops_share,
            "outcome": self.outcome,
            "message": self.message,
            "rule": self.rule,
            "facts": self.facts,
            "notes": list(self.notes),
        }

    def _padding(self) -> dict[str, Any]:
        logical, padded = self.argument_bytes or (None, None)
        lost = self.arguments.assign(lost=self.arguments["padded_bytes"] - self.arguments["bytes"])
        worst = lost[lost["lost"] > 0].sort_values("lost", ascending=False).head(PADDED_MOST)
        return {
            "argument_bytes": logical,
            "argument_padded_bytes": padded,
            "argument_tax": padded / logical - 1 if logical else None,
            "arguments": _records(worst[ARGUMENT_COLUMNS]),
            "matmuls": self.matmul_tax and asdict(self.matmul_tax),
        }


def analyze(tables: Tables, facts: Facts, options: dict[str, Any]) -> CompiledResult:
    """What the compiler said. Raises QuestionError for a run that no compiler made."""
    outcome = fact(facts, "outcome")
    if outcome is None:
        raise QuestionError("this run is no compiled program", advice=ASK)
    machine = hardware(tables, facts)
    per_chip = machine.devices_per_chip
    ops = _ops(tables)
    compute = ops[ops["role"] == "compute"]
    rows = _collectives(tables, per_chip)
    left = network(rows, facts, per_chip)
    held = _memory(tables, facts, per_chip)
    blind = int(untold(compute, compute["bytes"].sum()).sum())
    flops = _total(compute["flops"], per_chip)
    flops = None if blind and not flops else flops
    # copies that run beside other work fetch what operations then find in on-chip memory: their bytes count as well
    moved = _total(ops["bytes"], per_chip)
    bound = bounds(left, flops, moved, machine.peak_flops_per_s, facts)
    least = floor(tables, facts, machine, flops, left, bound.link_rates)
    seconds = least and least.seconds
    model_flops = fact(facts, "model_flops_per_step")
    tokens = _tokens(facts)
    known = compute[compute["cycles"].notna()]
    tax = _matmul_tax(tables, facts)
    return CompiledResult(
        outcome=str(outcome),
        message=str(fact(facts, "message") or ""),
        rule=str(fact(facts, "rule") or ""),
        fits=_fits(facts, str(outcome), held),
        bytes_per_chip=held,
        flops_per_chip=flops,
        estimated_cycles=_total(known["cycles"]),
        cycles_flops_share=float(known["flops"].sum() * per_chip / flops) if flops and len(known) else None,
        arguments=_arguments(tables),
        ops=compute.sort_values("cycles", ascending=False, na_position="last")[OP_COLUMNS].reset_index(drop=True),
        collectives=_by_axis(rows),
        network=left[NETWORK_COLUMNS],
        bounds=bound,
        floor=least,
        matmul_tax=tax,
        tokens_per_s_bound=tokens / seconds if tokens and seconds else None,
        model_flops_per_step=model_flops,
        mfu_bound=utilisation(model_flops, seconds, machine.chips, machine.peak_flops_per_s),
        facts={n: fact(facts, n) for n in FACTS if fact(facts, n) is not None},
        notes=(*_notes(str(outcome), ops, known, per_chip, blind), *once(unknown_programs(tables)), *bound.notes),
    )


def _matmul_tax(tables: Tables, facts: Facts) -> MatmulTax | None:
    """Padding of the matrix products on the chip's MXU; None where either is not known."""
    found = matmul_excess(tables, facts)
    if found is None:
        return None
    side, excess = found
    return MatmulTax(
        side,
        excess.padded_flops / excess.useful_flops - 1,
        excess.padded_flops_optimistic / excess.useful_flops - 1,
    )


def _total(values: pd.Series, times: int = 1) -> float | None:
    values = values.dropna()
    return float(values.sum()) * times if len(values) else None


def _records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows for JSON: what is not known is None, whole numbers are whole."""
    return [{k: None if pd.isna(v) else v for k, v in row.items()} for row in rows.astype(object).to_dict("records")]


def _ops(tables: Tables) -> pd.DataFrame:
    """Operations with FLOPs, bytes and cycles of one device in a step (one execution times executions)."""
    columns = ["role", "op", "category", "count", "cycles", "flops", "bytes", "source", "shape"]
    ops = frame(tables, "ops", columns)
    ops = ops[~ops["category"].astype(str).isin(HOLDS_OTHERS)].astype({"role": str})
    times = ops["count"].fillna(1).astype("Float64")
    for name in ("cycles", "flops", "bytes"):
        ops[name] = ops[name].where(ops[name] >= 0) * times  # the compiler marks with a negative what it cannot tell
    whole = ops["cycles"].sum()
    return ops.assign(cycles_share=ops["cycles"] / whole if whole else pd.NA)


def _collectives(tables: Tables, per_chip: int) -> pd.DataFrame:
    """Collectives of the program; `operand_bytes`: of one execution on one device, `bytes`: of a chip in a step."""
    columns = ["kind", "axis", "bytes", "count", "group_size", "asynchronous"]
    rows = frame(tables, "program_collectives", columns).rename(columns={"bytes": "operand_bytes"})
    rows["count"] = rows["count"].fillna(1)
    for name in ("kind", "axis"):
        rows[name] = rows[name].astype(object).where(rows[name].notna(), None)
    return rows.assign(bytes=rows["operand_bytes"] * rows["count"] * per_chip)


def _by_axis(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per kind and mesh axis, most bytes first."""
    grouped = rows.groupby(["kind", "axis"], dropna=False, sort=False)
    summed = grouped.agg(
        bytes=("bytes", "sum"),
        count=("count", "sum"),
        operand_bytes=("operand_bytes", "max"),
        group_size=("group_size", "max"),
        asynchronous=("asynchronous", "mean"),
    ).reset_index()
    summed["axis"] = summed["axis"].astype(object).where(summed["axis"].notna(), None)
    return summed.sort_values("bytes", ascending=False)[COLLECTIVE_COLUMNS].reset_index(drop=True)


def _memory(tables: Tables, facts: Facts, per_chip: int) -> dict[str, int | None]:
    """Padded bytes of a chip by kind: those of the program that needs most at once."""
    rows = frame(tables, "memory", ["kind", "bytes", "padded_bytes", "program", "capture"])
    rows = rows.assign(
        held=rows["padded_bytes"].fillna(rows["bytes"]),
        kind=rows["kind"].astype(str),
        program=rows["program"].fillna(0),
        capture=rows["capture"].fillna(0),
    )
    by = rows[rows["kind"].isin((*KINDS, "peak", "bytes_limit"))].pivot_table(
        index=["capture", "program"], columns="kind", values="held", aggfunc="max"
    )
    held: dict[str, int | None] = dict.fromkeys((*KINDS, "temporaries_laid_out", "peak", "limit"))
    if len(by):
        parts = by.reindex(columns=list(KINDS))
        peaks = by["peak"].fillna(parts.sum(axis=1)) if "peak" in by else parts.sum(axis=1, min_count=1)
        peaks = peaks.astype(float)
        most = by.loc[peaks.idxmax()] if peaks.notna().any() else by.iloc[0]
        held |= {k: _bytes(most.get(k), per_chip) for k in KINDS}
        held["peak"] = _bytes(peaks.max(), per_chip)
        held |= _at_peak(held)
        held["limit"] = _bytes(by["bytes_limit"].max() if "bytes_limit" in by else None, per_chip)
    if held["peak"] is None:
        held["peak"] = _bytes(fact(facts, "needed_bytes"), per_chip)
    if held["limit"] is None:
        held["limit"] = _bytes(fact(facts, "limit_bytes"), per_chip)
    chip = chip_of(facts)
    if held["limit"] is None and chip:
        held["limit"] = _bytes(chip.value("hbm_usable_bytes") or chip.value("hbm_bytes"))
    return held


def _at_peak(held: dict[str, int | None]) -> dict[str, int | None]:
    """Temporaries that are alive at the peak, as `memory` tells them; the compiler's own sum is of all that it lays
    out, of which some begins where other ended."""
    laid_out, peak = held["temporaries"], held["peak"]
    if laid_out is None or peak is None:
        return {"temporaries_laid_out": laid_out}
    alive = max(peak - (held["arguments"] or 0) - (held["outputs"] or 0), 0)
    return {"temporaries": min(laid_out, alive), "temporaries_laid_out": laid_out}


def _bytes(value: Any, times: int = 1) -> int | None:
    return None if value is None or pd.isna(value) else int(value) * times


def _fits(facts: Facts, outcome: str, held: dict[str, int | None]) -> bool | None:
    said = fact(facts, "fits")
    if isinstance(said, bool):
        return said
    if outcome == "out_of_memory":
        return False
    peak, limit = held["peak"], held["limit"]
    return None if peak is None or limit is None else peak <= limit


def _arguments(tables: Tables) -> pd.DataFrame:
    rows = frame(tables, "memory", ["kind", "name", "shape", "bytes", "padded_bytes"], [("kind", "==", "argument")])
    rows = rows.assign(tax=rows["padded_bytes"].astype("Float64") / rows["bytes"].where(rows["bytes"] > 0) - 1)
    return rows.sort_values("padded_bytes", ascending=False)[ARGUMENT_COLUMNS].reset_index(drop=True)


def _tokens(facts: Facts) -> float | None:
    """Tokens of one step over all chips."""
    sequences, length = fact(facts, "global_batch"), sequence_of(facts)
    return float(sequences) * length if sequences and length else None


def _notes(outcome: str, ops: pd.DataFrame, known: pd.DataFrame, per_chip: int, blind: int) -> list[str]:
    if outcome == "out_of_memory":
        return ["The compiler stopped when the program did not fit: of what it would compute nothing is known."]
    notes = []
    if per_chip > 1:
        notes.append(f"A chip shows as {per_chip} devices: bytes and FLOPs are those of all {per_chip}, cycles of one.")
    if missing := int((ops["role"] == "compute").sum() - len(known)):
        notes.append(f"The compiler estimates no cycles for {missing:,} of {missing + len(known):,} operations.")
    if blind:
        notes.append(untold_said(blind, "the figures of computation and the least time"))
    return notes
