"""Published runs held against their own figures, and those like a given run: same convention, nearest in kind."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from analyzers.flops.fingerprint import fingerprint
from analyzers.flops.formats import PRECISIONS
from catalog.chips import Chip, chips
from catalog.models import Model, models, parameters
from catalog.published import PublishedRun, published

HARDWARE = "hardware_full_remat"  # counts recomputation: what it gives is HFU
TOLERANCE = 0.02  # the figures of one row of a table are often of different steps, and rounded one from another


@dataclass(frozen=True)
class Reviewed:
    """A published run with what follows from it.

    `parameters`: as published, else by the catalogue's dimensions. `utilisation`: FLOP/s of a chip by the run's own
    convention over the dense peak of the precision that ran: MFU, or HFU where the convention counts recomputation.
    `bf16_utilisation`: over the BF16 peak (EMFU); may exceed 1. Both from the rate; from the printed MFU where no rate
    is printed. `contradictions`: why its figures cannot all be true, or were divided by another peak than that of the
    precision that ran; empty where they agree.
    """

    run: PublishedRun
    parameters: float | None
    utilisation: float | None
    bf16_utilisation: float | None
    contradictions: tuple[str, ...]


@cache
def reviewed() -> tuple[Reviewed, ...]:
    """Every published run of the catalogue, checked."""
    return tuple(map(review, published()))


def review(run: PublishedRun) -> Reviewed:
    """One run, checked. The tolerance is one in the last printed place of each figure, at least TOLERANCE."""
    chip, model = chips()[run.chip], models().get(run.model)
    peak = native_peak(chip, run.precision)
    rate, mfu = run.flops_per_s_per_chip, run.mfu
    if rate is None and mfu is not None and run.claimed_peak_flops_per_s:
        rate = mfu * run.claimed_peak_flops_per_s
    bf16 = native_peak(chip, "bf16")
    return Reviewed(
        run,
        parameters=run.parameters or (float(parameters(model).total) if model else None),
        utilisation=rate / peak if rate and peak else None,
        bf16_utilisation=rate / bf16 if rate and bf16 else None,
        contradictions=_contradictions(run, chip, model, peak),
    )


def native_peak(chip: Chip, precision: str | None) -> float | None:
    """Dense FLOP/s of the chip at a precision; None where either is not known."""
    value = chip.value(PRECISIONS[precision]) if precision in PRECISIONS else None
    if value is None and precision == "fp16":  # tensor cores and MXUs take FP16 as fast as BF16
        value = chip.value("bf16_flops_per_s")
    return None if value is None else float(value)


def _contradictions(run: PublishedRun, chip: Chip, model: Model | None, peak: float | None) -> tuple[str, ...]:
    rate = None if "tflops_per_s" in run.derived else run.flops_per_s_per_chip
    tokens = None if "tokens_per_s" in run.derived else run.tokens_per_s_per_chip
    named = [n for n in ("tflops_per_s", "mfu_percent", "tokens_per_s") if n in run.printed]
    exact = sum(run.unit(n) / float(run.printed[n]) for n in named)
    return fingerprint(
        model=model,
        seq=run.seq,
        chip=chip,
        precision=run.precision,
        peak_flops_per_s=peak,
        tflops_per_s=rate and rate / 1e12,
        tokens_per_s=tokens,
        printed_mfu=run.mfu,
        tolerance=max(TOLERANCE, exact),
    ).contradictions


def likes(
    rows: Iterable[Reviewed], *, convention: str, chip: str | None, chips_held: float | None, size: float | None
) -> list[Reviewed]:
    """Those by the same convention, nearest first: same chip, then nearest in `size` (parameters) and number of chips.

    Distance = |log2 of the ratio of parameters| + |log2 of the ratio of chips|, what is not known counting as a ratio
    of 16.
    """

    def distance(row: Reviewed) -> tuple[bool, float]:
        apart = _octaves(row.parameters, size) + _octaves(row.run.chips, chips_held)
        return row.run.chip != chip, apart

    return sorted((r for r in rows if r.run.convention == convention), key=distance)


def _octaves(a: float | None, b: float | None) -> float:
    return abs(math.log2(a / b)) if a and b else 4.0
