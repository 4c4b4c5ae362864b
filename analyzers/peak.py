"""Which peak the useful maths is measured against, and how many chips were held."""

from dataclasses import dataclass

from analyzers.base import Facts, fact
from analyzers.subject import chip_of
from catalog.chips import Chip
from runs.tables import Tables, frame

PRECISIONS = {
    "bf16": "bf16_flops_per_s", "fp16": "fp16_flops_per_s", "fp8": "fp8_flops_per_s", "int8": "int8_ops_per_s",
    "fp4": "fp4_flops_per_s",
}  # fmt: skip


@dataclass(frozen=True)
class Hardware:
    """Chips held, devices a chip shows as, and the peak of one chip with its source; None where nothing tells."""

    chips: int
    devices_per_chip: int
    peak_flops_per_s: float | None
    peak_source: str
    notes: tuple[str, ...]


def hardware(tables: Tables, facts: Facts, devices: int) -> Hardware:
    """From what people declared, else the profile, else the catalogue; `devices` is how many the profile saw."""
    notes: list[str] = []
    known = chip_of(facts)
    per_chip = int(fact(facts, "devices_per_chip") or (known and known.value("jax_devices_per_chip")) or 1)
    seen = -(-devices // per_chip)
    chips = int(fact(facts, "chips") or 0)
    if chips < 1:
        chips = max(seen, 1)
        if not seen:
            notes.append("No input says how many chips were held: counted as one. Ingest with --chips to say.")
    elif seen > chips:
        notes.append(f"{chips} chips were stated, but the profile shows {seen}: counted as {seen}.")
        chips = seen
    return Hardware(chips, per_chip, *_peak(tables, facts, known, per_chip), tuple(notes))


def _peak(tables: Tables, facts: Facts, known: Chip | None, per_chip: int) -> tuple[float | None, str]:
    if stated := fact(facts, "peak_flops_per_s"):
        how = "declared peak" if facts["peak_flops_per_s"].basis == "declared" else "peak that the trace states"
        return float(stated), f"{how}, {stated / 1e12:.4g} TFLOP/s"
    seen = frame(tables, "captures", ["peak_flops_per_s"])["peak_flops_per_s"].dropna()
    if len(seen):
        peak = float(seen.max()) * per_chip
        return peak, f"peak that the trace states, {peak / 1e12:.4g} TFLOP/s"
    if known:
        precision = str(fact(facts, "precision") or "bf16").lower()
        value = known.value(PRECISIONS.get(precision, "bf16_flops_per_s"))
        if value:
            return float(value), f"catalogue peak of {known.name}, {precision} dense, {value / 1e12:.4g} TFLOP/s"
    return None, ""
