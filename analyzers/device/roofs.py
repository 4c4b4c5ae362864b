"""The roofs of one device: the FLOP/s and the memory bytes/s that it cannot exceed, and those that it reached.

A device is what a framework counts as one. Where a chip shows as two, each has half of the chip's peaks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts, FactValue, fact
from analyzers.flops.formats import PRECISIONS
from analyzers.flops.formats_ran import paces
from analyzers.flops.precision import PEAK, PRECISION, Peaks, format_of, peaks
from analyzers.subject import CHIP
from catalog.chips import Chip
from errors.numbers import PER_SECOND
from errors.options import Option
from runs.tables import MemoryTables, Tables, frame

BANDWIDTH = Option(
    "hbm_bytes_per_s",
    PER_SECOND,
    None,
    "peak memory bandwidth of one chip; default: traced or catalogue's",
    unit="bytes/s",
)
ROOF_OPTIONS = (CHIP, PRECISION, PEAK, BANDWIDTH)
AGREE = 0.1  # a trace that states a bandwidth further than this from the data sheet counts it wrongly
CREDIBLE = 1.05  # of the specified peak: beyond it FLOPs or bytes are not what moved; a clock may be a little off
ENOUGH_SHARE, ENOUGH_RUNS, ENOUGH_S = 1e-3, 3, 1e-6  # an operation's time, executions and seconds of one execution
SAME = 0.01  # peaks that differ by less are one
WORDS = {"flops": "peak FLOP/s", "bytes": "memory bandwidth"}
WHY = {
    "flops": "their FLOPs are counted too high",
    "bytes": "their bytes are counted though they stay in caches or on-chip memory",
}
_CERTAINTY = ("measured", "declared", "published", "derived", "modelled")
_NOTHING = MemoryTables({})


@dataclass(frozen=True)
class Rate:
    """So many per second on one device; `basis` how that is known, `source` from where, in words."""

    per_s: float
    basis: str
    source: str


@dataclass(frozen=True)
class Roof:
    """`flops`: FLOP/s of one device; `bytes`: bytes/s of its memory; None where not known. `paces`: by format, times
    `flops` at which products run in it."""

    name: str
    flops: Rate | None
    bytes: Rate | None
    paces: Mapping[str, float] = field(default_factory=dict)

    @property
    def ridge(self) -> float | None:
        """FLOP/byte at which both bind alike: left of it memory binds, right of it compute."""
        return self.flops.per_s / self.bytes.per_s if self.flops and self.bytes else None

    @property
    def basis(self) -> str:
        """That of the less certain of its two rates."""
        return max((r.basis for r in (self.flops, self.bytes) if r), key=_CERTAINTY.index, default="unattributed")

    def filled(self, other: "Roof | None") -> "Roof":
        """This roof with what it lacks taken from another."""
        if other is None:
            return self
        return Roof(self.name, self.flops or other.flops, self.bytes or other.bytes, self.paces or other.paces)

    def pace(self, rows: pd.DataFrame) -> np.ndarray:
        """Times `flops` at which each operation may run, by its `format`; 1 where none is told."""
        return rows["format"].map(dict(self.paces)).astype(float).fillna(1.0).to_numpy()

    def to_dict(self) -> dict[str, Any]:
        rates = [r for r in (self.flops, self.bytes) if r]
        return {
            "name": self.name,
            "flops_per_s": self.flops and self.flops.per_s,
            "bytes_per_s": self.bytes and self.bytes.per_s,
            "ridge_flops_per_byte": self.ridge,
            "basis": self.basis,
            "source": "; ".join(dict.fromkeys(r.source for r in rates)),
            "flops_basis": self.flops and self.flops.basis,
            "bytes_basis": self.bytes and self.bytes.basis,
        }


def bound_s(flops: np.ndarray, moved: np.ndarray, roof: Roof) -> tuple[np.ndarray, np.ndarray]:
    """The least seconds for so many FLOPs and bytes, max(flops / peak, bytes / bandwidth), and whether memory binds.

    Elementwise. NaN where FLOPs or bytes are not known, or where a rate that they need is not: FLOPs of 0 need none.
    """
    flops, moved = np.asarray(flops, dtype=float), np.asarray(moved, dtype=float)
    compute = _seconds(flops, roof.flops)
    memory = _seconds(moved, roof.bytes)
    return np.maximum(compute, memory), memory > compute


def _seconds(amount: np.ndarray, rate: Rate | None) -> np.ndarray:
    if rate:
        return amount / rate.per_s
    return np.where(amount == 0, 0.0, np.nan)


def spec_roof(tables: Tables, facts: Facts, options: Mapping[str, Any]) -> tuple[Roof, list[str]]:
    """What one device is specified to do, and notes: from options, else declared facts, the trace, the catalogue. Of
    one host that is asked about, what its own captures state.

    Raises QuestionError for a chip that the catalogue does not have and a precision that its chip does not do.
    """
    facts, host = of_host(tables, facts, options), options.get("host")
    bare = {k: v for k, v in facts.items() if k != "peak_flops_per_s" or v.basis == "declared"}
    sheet = peaks(_NOTHING, bare, options)
    per_chip = devices_per_chip(facts, sheet.chip)
    notes: list[str] = []
    flops = _spec_flops(_traced(tables, "peak_flops_per_s", host), facts, options, sheet, per_chip)
    traced = _traced(tables, "peak_hbm_bytes_per_s", host)
    moved = _spec_bytes(traced, options, sheet.chip, per_chip, notes)
    if flops and flops.basis == "measured" and (kinds := _kinds(tables, host)):
        notes.append(
            f"The devices are of several kinds, with peaks of {kinds} TFLOP/s: every operation is held against the "
            "largest. Ask with host=NAME for one of them."
        )
    if per_chip > 1 and (flops or moved):
        notes.append(f"A chip shows as {per_chip} devices: each has 1/{per_chip} of the chip's peaks.")
    usual = not any(options.get(o.name) for o in (PEAK, PRECISION)) and "peak_flops_per_s" not in bare
    usual = usual and format_of(sheet.precision or "bf16") in (None, "bf16", "fp16")
    return Roof("spec", flops, moved, paces(sheet.chip) if flops and usual else {}), notes


def devices_per_chip(facts: Facts, known: Chip | None) -> int:
    """Devices that one chip shows as: declared, else the catalogue's, else 1."""
    return int(fact(facts, "devices_per_chip") or (known and known.value("jax_devices_per_chip")) or 1)


def of_host(tables: Tables, facts: Facts, options: Mapping[str, Any]) -> Facts:
    """The facts with the chip that the captures of the asked host name, where a profile told of the run's chip."""
    kinds = _stated(tables, "device_type", options.get("host")).unique()
    if not options.get("host") or len(kinds) != 1 or "chip" not in facts or facts["chip"].basis == "declared":
        return facts
    return {**facts, "chip": FactValue(str(kinds[0]), facts["chip"].basis, facts["chip"].source)}


def _stated(tables: Tables, column: str, host: str | None) -> pd.Series:
    """What captures state, of one host or of all."""
    seen = frame(tables, "captures", ["host", column])
    return (seen if host is None else seen[seen["host"] == host])[column].dropna()


def _traced(tables: Tables, column: str, host: str | None) -> float | None:
    """The largest that a capture states of one device."""
    seen = _stated(tables, column, host)
    return float(seen.max()) if len(seen) and float(seen.max()) > 0 else None


def _kinds(tables: Tables, host: str | None) -> str:
    """The different peaks that captures state, in TFLOP/s; "" where all are one."""
    seen = sorted(_stated(tables, "peak_flops_per_s", host).astype(float).unique().tolist())
    return " and ".join(f"{v / 1e12:.4g}" for v in seen) if seen and seen[-1] > seen[0] * (1 + SAME) else ""


def _spec_flops(
    traced: float | None, facts: Facts, options: Mapping[str, Any], sheet: Peaks, per_chip: int
) -> Rate | None:
    asked = any(options.get(o.name) for o in (PEAK, PRECISION, CHIP))
    declared = "peak_flops_per_s" in facts and facts["peak_flops_per_s"].basis == "declared"
    if traced and not asked and not declared and format_of(sheet.precision or "bf16") in (None, "bf16"):
        return Rate(traced, "measured", f"peak that the trace states, {traced / 1e12:.4g} TFLOP/s")
    if sheet.native:
        basis = "declared" if options.get(PEAK.name) or (declared and not asked) else "published"
        return Rate(sheet.native / per_chip, basis, sheet.source)
    return Rate(traced, "measured", f"peak that the trace states, {traced / 1e12:.4g} TFLOP/s") if traced else None


def _spec_bytes(
    traced: float | None, options: Mapping[str, Any], known: Chip | None, per_chip: int, notes: list[str]
) -> Rate | None:
    if given := options.get(BANDWIDTH.name):
        return Rate(given / per_chip, "declared", f"bandwidth given, {given / 1e9:,.6g} GB/s of a chip")
    sheet = known and known.value("hbm_bytes_per_s")
    published = sheet and Rate(
        sheet / per_chip, "published", f"catalogue bandwidth of {known.name}, {sheet / 1e9:,.6g} GB/s"
    )
    if traced is None or options.get(CHIP.name):
        return published or None
    if published and abs(traced / published.per_s - 1) > AGREE:
        notes.append(
            f"The trace states a memory bandwidth of {traced / 1e9:,.6g} GB/s, the data sheet of {known.name} "
            f"{published.per_s / 1e9:,.6g} GB/s for one device: the data sheet is used."
        )
        return published
    return Rate(traced, "measured", f"bandwidth that the trace states, {traced / 1e9:,.6g} GB/s")


def other_precisions(known: Chip | None, spec: Roof, per_chip: int) -> list[Roof]:
    """The catalogue's peaks of a chip in the formats that the spec roof is not about."""
    roofs = []
    for word, key in PRECISIONS.items() if known else ():
        peak = known.value(key)
        if peak and not (spec.flops and abs(peak / per_chip / spec.flops.per_s - 1) < SAME):
            rate = Rate(peak / per_chip, "published", f"catalogue peak of {known.name}, {word.upper()} dense")
            roofs.append(Roof(f"spec {word}", rate, spec.bytes))
    return roofs


def reached_roof(units: pd.DataFrame, spec: Roof) -> tuple[Roof, list[str]]:
    """The best rates that operations of this very run reached, and notes.

    `units`: `op`, `self_s`, `count`, `flops`, `bytes` summed over executions and devices. Considered are operations
    with at least a thousandth of all time, three executions and a microsecond each: for FLOP/s those that compute
    binds at the specified roofs, for bytes/s those that memory binds; all, where a specified roof is lacking. A rate
    beyond what the hardware is specified for is not believed: such bytes stayed on the chip, such FLOPs were counted
    too high; what is a little beyond it counts as the specified rate. A peak that people declared is no such limit.
    Products in formats of another rate count as if they had run at the roof's own.
    """
    pace = spec.pace(units)
    units = units.assign(flops=units["flops"].to_numpy(dtype=float) / pace)
    total = float(units["self_s"].sum())
    seconds, runs = units["self_s"].to_numpy(dtype=float), units["count"].to_numpy(dtype=float)
    runs = np.maximum(runs, 1)
    enough = (seconds >= ENOUGH_SHARE * total) & (seconds > 0) & (runs >= ENOUGH_RUNS) & (seconds / runs >= ENOUGH_S)
    least, by_memory = bound_s(units["flops"].to_numpy(dtype=float), units["bytes"].to_numpy(dtype=float), spec)
    told = ~np.isnan(least) if spec.ridge else np.zeros(len(units), dtype=bool)
    flops, note = _best(units[enough & ~(told & by_memory)], "flops", spec.flops, spec.paces)
    moved, other = _best(units[enough & ~(told & ~by_memory)], "bytes", spec.bytes)
    if flops and moved and not spec.flops and flops.source == moved.source:
        flops = None  # one operation shows one roof, and its FLOPs may well have waited for memory
    held = [
        f"Products in {word.upper()} are held against {spec.paces[word]:.3g} times the peak FLOP/s, as the catalogue "
        "has it of this chip."
        for word in sorted(set(units["format"][pace != 1.0]))
    ]
    return Roof("reached", flops, moved, spec.paces), [*(n for n in (note, other) if n), *held]


def _best(
    units: pd.DataFrame, column: str, limit: Rate | None, paces: Mapping[str, float] | None = None
) -> tuple[Rate | None, str]:
    """The highest credible rate of a column, and what is to be said of incredible ones."""
    rate = units[column].to_numpy(dtype=float) / units["self_s"].to_numpy(dtype=float)
    rate = np.where(np.isfinite(rate), rate, 0.0)
    beyond, note = rate > CREDIBLE * limit.per_s if limit else rate > np.inf, ""
    if limit and beyond.any():
        most = f"{float(rate.max()) / limit.per_s:.3g} times the {limit.basis} {WORDS[column]}"
        why = WHY[column] if limit.basis != "declared" else "that peak is too low for one operation, or " + WHY[column]
        how_many = f"{beyond.sum()} operations run" if beyond.sum() > 1 else "1 operation runs"
        note = f"{how_many} beyond the specified roof, at up to {most}: {why}."
    if limit and limit.basis != "declared":
        rate = np.minimum(np.where(beyond, 0.0, rate), limit.per_s)
    if not len(rate) or rate.max() <= 0:
        return None, note
    best = int(rate.argmax())
    word = units["format"].iloc[best]
    times = (paces or {}).get(word)
    said = f", in {word.upper()} at {times:.3g} times that" if times else ""
    return Rate(float(rate[best]), "derived", f"reached in this run by {units['op'].iloc[best]}{said}"), note
