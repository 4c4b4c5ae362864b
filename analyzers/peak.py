"""Which peak the useful maths is measured against, and how many chips were held."""

from dataclasses import dataclass

from analyzers.base import Facts, fact
from analyzers.formats import PRECISIONS, format_said
from analyzers.subject import chip_of, devices_per_chip
from catalog.chips import Chip
from runs.tables import Tables, frame


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
    per_chip = devices_per_chip(facts)
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
    """What people declared; else the catalogue's peak of a format other than BF16, if one ran; else the trace's."""
    stated = fact(facts, "peak_flops_per_s")
    if stated and facts["peak_flops_per_s"].basis == "declared":
        return float(stated), f"declared peak, {stated / 1e12:.4g} TFLOP/s"
    word = format_said(facts) or "bf16"
    value = known.value(PRECISIONS[word]) if known else None
    seen = frame(tables, "captures", ["peak_flops_per_s"])["peak_flops_per_s"].dropna()
    if word == "bf16" or not value:  # traces state the BF16 peak, whatever ran
        device = float(seen.max()) if len(seen) else stated  # a trace states the peak of a device
        if device:
            peak = device * per_chip
            return peak, f"peak that the trace states, {peak / 1e12:.4g} TFLOP/s"
        value, word = value or (known.value("bf16_flops_per_s") if known else None), word if value else "bf16"
    if value:
        return float(value), f"catalogue peak of {known.name}, {word} dense, {value / 1e12:.4g} TFLOP/s"
    return None, ""
