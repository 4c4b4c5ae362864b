"""Which peak the useful maths is measured against, and how many chips were held."""

from collections.abc import Iterable
from dataclasses import dataclass

from analyzers.base import Facts, fact
from analyzers.flops.formats import PRECISIONS, format_said
from analyzers.flops.formats_ran import formats_ran, mixed, native_peak
from analyzers.held import held
from analyzers.subject import chip_of, devices_per_chip
from catalog.chips import Chip
from runs.tables import Tables, frame


@dataclass(frozen=True)
class Hardware:
    """Chips held (`chips_known`: or counted as one), devices a chip shows as, and the peak of one chip with its source;
    None where nothing tells."""

    chips: int
    devices_per_chip: int
    peak_flops_per_s: float | None
    peak_source: str
    notes: tuple[str, ...]
    chips_known: bool = True


def hardware(tables: Tables, facts: Facts) -> Hardware:
    """From what people declared, else the profile, else the catalogue."""
    found = held(tables, facts)
    value, source = peak(tables, facts)
    return Hardware(found.counted, found.devices_per_chip, value, source, found.notes, found.chips is not None)


def doubts(chip: Chip, formats: Iterable[str]) -> str:
    """` (doubtful: ...)` behind a peak of these formats that the catalogue calls doubtful; else empty."""
    found = dict.fromkeys(chip.doubt(PRECISIONS[word]) for word in formats)
    return "".join(f" ({doubt})" for doubt in found if doubt)


def peak(tables: Tables, facts: Facts) -> tuple[float | None, str]:
    """(peak FLOP/s of one chip, its source): what people declared; else the catalogue's peak of a format other than
    BF16, if one ran, as the job says or else as the products of profiled programs do; else the trace's, of devices of
    several kinds their mean; else the catalogue's of BF16, of a chip without BF16 that of FP16."""
    known, per_chip = chip_of(facts), devices_per_chip(facts)
    stated = fact(facts, "peak_flops_per_s")
    if stated and facts["peak_flops_per_s"].basis == "declared":
        return float(stated), f"declared peak, {stated / 1e12:.4g} TFLOP/s"
    said = fact(facts, "quantization") or fact(facts, "precision")
    if known and not said and (mix := formats_ran(tables, known)):
        value = native_peak(known, mix)
        source = f"catalogue peak of {known.name}, {mixed(mix)} dense, {value / 1e12:.4g} TFLOP/s"
        return value, source + doubts(known, mix)
    word = format_said(facts) or "bf16"
    value = known.value(PRECISIONS[word]) if known else None
    if word == "bf16" or not value:  # traces state the BF16 peak, whatever ran
        found, kinds = _traced(tables)
        if device := found or stated:  # a trace states the peak of a device
            value = device * per_chip
            several = " and ".join(f"{k * per_chip / 1e12:.4g}" for k in kinds)
            mean = f"mean of the peaks that the traces state, {several} TFLOP/s, over the devices: "
            return value, f"{mean if several else 'peak that the trace states, '}{value / 1e12:.4g} TFLOP/s"
        value, word = (value, word) if value else _usual(known)
    if value and known:
        said = f"catalogue peak of {known.name}, {word} dense, {value / 1e12:.4g} TFLOP/s"
        return float(value), said + doubts(known, (word,))
    return None, ""


def _traced(tables: Tables) -> tuple[float | None, tuple[float, ...]]:
    """(peak of a device as captures state it, the different ones): sum of the devices' peaks / devices, each process
    once; None where none does, and no different ones where all are one."""
    seen = frame(tables, "captures", ["host", "process", "devices", "peak_flops_per_s"])
    seen = seen.dropna(subset=["peak_flops_per_s"]).drop_duplicates(["host", "process", "peak_flops_per_s"])
    peaks = seen["peak_flops_per_s"].astype(float)
    kinds = tuple(sorted(peaks.unique().tolist()))
    if len(kinds) < 2:
        return (kinds[0] if kinds else None), ()
    devices = seen["devices"].fillna(1).astype(float)
    return float((peaks * devices).sum() / devices.sum()), kinds


def _usual(known: Chip | None) -> tuple[float | None, str]:
    """(peak, format) that is taken where nothing says which format ran."""
    for word in ("bf16", "fp16"):
        if known and (value := known.value(PRECISIONS[word])):
            return value, word
    return None, "bf16"
