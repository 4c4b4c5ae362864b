"""At which utilisation jobs like one ran, by what was published: a range, never one number.

Where a run's model and sequence length are known it is counted by causal model FLOPs over the dense peak of the
precision that ran; else what it printed stands, by its own convention (without a causal mask a few per cent more).
Fine-tuning, conventions that count recomputation, and figures above the chip's peak are left out.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np

from catalog.chips import Chip, chips
from catalog.flops import flops_per_token
from catalog.models import Model, models
from catalog.published import PublishedRun, published

PEAKS = {
    "bf16": "bf16_flops_per_s",
    "fp16": "fp16_flops_per_s",
    "fp8": "fp8_flops_per_s",
    "int8": "int8_ops_per_s",
    "fp4": "fp4_flops_per_s",
}
NOT_OF_A_MODEL = ("hardware_full_remat", "lora")  # conventions of which no MFU follows
LEAST_RUNS = 3  # fewer are no range
MANY_RUNS = 10  # from here on the ends of the range are its 10th and 90th percentile, else the least and the most


@dataclass(frozen=True)
class Ran:
    """A published run and its utilisation: model FLOP/s of a chip over the peak of the precision that ran. `causal`:
    counted so, else as it was printed."""

    run: PublishedRun
    mfu: float
    causal: bool


@dataclass(frozen=True)
class Range:
    """Utilisation of runs like a job: `likely` is their median, `low` and `high` hold four fifths of them (all, where
    they are few). `alike`: whether they are of the job's own class, dense or with experts."""

    low: float
    likely: float
    high: float
    runs: tuple[Ran, ...]
    alike: bool

    @property
    def most_chips(self) -> int:
        """Chips of the largest of these runs: beyond, nothing like it was published."""
        return max(r.run.chips for r in self.runs)


def peak_flops_per_s(chip: Chip, precision: str) -> float | None:
    """Dense FLOP/s of the chip at a precision; None where the catalogue does not know."""
    value = chip.value(PEAKS[precision])
    return None if value is None else float(value)


def class_of(model: Model) -> str:
    """`moe` where any layer has experts, else `dense`."""
    return "moe" if any(layer.experts for layer in model.feedforward) else "dense"


def utilisation(chip: Chip, precision: str, model: Model) -> Range | None:
    """How published runs on this chip at this precision fared: of the model's class where there are enough, else of
    any; None where too few were published."""
    ran = [r for r in counted() if (r.run.chip, r.run.precision) == (chip.name, precision)]
    of_class = [r for r in ran if r.run.model_class == class_of(model)]
    if len(of_class) >= LEAST_RUNS:
        return _range(of_class, alike=True)
    return _range(ran, alike=False) if len(ran) >= LEAST_RUNS else None


@cache
def counted() -> tuple[Ran, ...]:
    """Every published run whose utilisation can be told."""
    found = (_ran(run) for run in published() if run.task == "pretraining" and run.convention not in NOT_OF_A_MODEL)
    return tuple(ran for ran in found if ran is not None and 0 < ran.mfu <= 1)


def _ran(run: PublishedRun) -> Ran | None:
    model, chip = models().get(run.model), chips()[run.chip]
    peak = peak_flops_per_s(chip, run.precision) if run.precision in PEAKS else None
    rate = run.flops_per_s_per_chip
    if rate is None and run.mfu is not None and run.claimed_peak_flops_per_s is not None:
        rate = run.mfu * run.claimed_peak_flops_per_s
    if peak is None:
        return None
    if model is None or run.seq is None:
        return None if rate is None else Ran(run, rate / peak, causal=False)
    tokens_per_s = run.tokens_per_s_per_chip
    if tokens_per_s is None and rate is not None and run.convention is not None:
        tokens_per_s = rate / flops_per_token(model, run.seq, run.convention).total
    if tokens_per_s is not None:
        return Ran(run, tokens_per_s * flops_per_token(model, run.seq, "causal").total / peak, causal=True)
    return None if rate is None else Ran(run, rate / peak, causal=False)


def _range(ran: Iterable[Ran], alike: bool) -> Range:
    runs = tuple(ran)
    ends = (10, 90) if len(runs) >= MANY_RUNS else (0, 100)
    low, likely, high = np.percentile([r.mfu for r in runs], (ends[0], 50, ends[1]))
    return Range(float(low), float(likely), float(high), runs, alike)
