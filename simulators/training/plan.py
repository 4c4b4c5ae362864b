"""The layouts of a training job on so many chips of a kind, ranked: time of a step, memory, MFU, and why others lose.

Every legal layout is scored by `simulators.training.step` with the shares of peaks that published runs reached; those
that do not fit the memory are counted and left out. A step's chip time is entered in accounts that add up to it:

    useful_maths           model FLOPs of the batch over the peak of all chips
    recomputation          forward passes done again
    exposed_communication  what is waited for of tensor, context and expert parallelism, of sends, weights and gradients
    device_idle            the pipeline's bubble
    idle_launching         waiting for the host
    below_roofline         the rest: products below the peak, memory, the optimiser
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from catalog.chips import Chip
from catalog.models import Model
from errors import QuestionError
from simulators.training.efficiency import Fitted, fitted
from simulators.training.layout import REMATS, Layouts, legal
from simulators.training.machine import Floats, Machine, machine
from simulators.training.memory import memory
from simulators.training.step import steps
from simulators.training.work import Work, work

LEDGER: dict[str, tuple[str, ...]] = {
    "recomputation": ("recomputed",),
    "exposed_communication": ("tensor", "context", "expert", "sends", "exposed"),
    "device_idle": ("bubble",),
    "idle_launching": ("launches",),
}
PART = REMATS.index("part")
ROUNDED = 1 + 1e-9  # memory that is filled to the last byte is filled
NEAR = 0.95  # of the memory: beyond, a layout fits only just


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A layout and what a step of it takes.

    `low_s`, `high_s`: between which nine of ten published steps lay, of runs that were held back. `published`: runs of
    this generation at this precision that the shares rest on. `accounts`: seconds of the step, which they add up to.
    `tight`: next to no memory is left, and no more layers could be computed again to make some.
    """

    chip: str
    chips: int
    layout: dict[str, int | str]
    step_s: float
    low_s: float
    high_s: float
    flops_per_s_per_chip: float
    mfu: float
    tokens_per_s_per_chip: float
    bytes_per_chip: float
    hbm_bytes: float
    recomputed: float
    tight: bool
    published: int
    accounts: dict[str, float]
    parts: dict[str, float]

    @property
    def bytes_left(self) -> float:
        """Of the chip's memory."""
        return self.hbm_bytes - self.bytes_per_chip


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a number of chips has: the fastest layouts, each better in no account than those before it.

    `tried` layouts divide, `fit` of them fit; `least_bytes`: what the smallest of all needs.
    """

    chip: Chip
    chips: int
    hbm_bytes: float
    assumed: tuple[str, ...]
    layouts: tuple[Planned, ...] = ()
    tried: int = 0
    fit: int = 0
    least_bytes: float = math.inf


def plan(
    model: Model,
    chip: Chip,
    chips: int,
    batch: int,
    seq: int,
    *,
    precision: str = "bf16",
    fixed: Mapping[str, int] | None = None,
    remat: str = "part",
    most: int = 5,
) -> Found:
    """The fastest layouts of `batch` sequences a step. Raises QuestionError for a chip without the numbers."""
    on = machine(chip, precision)
    none = Found(chip=chip, chips=chips, hbm_bytes=on.hbm_bytes, assumed=on.assumed(chips))
    found = legal(model, chips, batch, seq, domain=on.domain, fixed={**(fixed or {}), "remat": REMATS.index(remat)})
    if not len(found):
        return none
    held = memory(model, found, seq, on.hbm_bytes, batch)
    fits = held.bytes <= on.hbm_bytes * ROUNDED
    some = replace(none, tried=len(found), fit=int(fits.sum()), least_bytes=float(held.bytes.min()))
    if not some.fit:
        return some
    known = fitted(chip.name, precision, any(b.experts for b in model.feedforward))
    scored = _Scored(work(model, seq), found.take(fits), held.again[fits], held.bytes[fits], batch, on, known)
    return replace(some, layouts=tuple(scored.planned(at) for at in scored.distinct(most)))


class _Scored:
    """Layouts that fit, with the time of each."""

    def __init__(
        self, work: Work, layouts: Layouts, again: Floats, taken: Floats, batch: int, on: Machine, known: Fitted
    ):
        self.layouts, self.again, self.taken, self.on, self.known = layouts, again, taken, on, known
        self.timed = steps(work, layouts, again, batch, on, known.efficiency)
        self.tokens = batch * work.seq
        self.flops = work.flops_per_token * self.tokens

    def distinct(self, most: int) -> list[int]:
        """The fastest of each way to cut the model; sequences at once, chunks and copies are details of it."""
        seen: dict[tuple[int, ...], int] = {}
        for at in np.argsort(self.timed.seconds, kind="stable"):
            cut = tuple(int(getattr(self.layouts, n)[at]) for n in ("tensor", "context", "pipeline", "expert"))
            seen.setdefault(cut, int(at))
            if len(seen) == most:
                break
        return list(seen.values())

    def planned(self, at: int) -> Planned:
        chips, seconds = int(self.layouts.chips[at]), float(self.timed.seconds[at])
        parts = {name: float(values[at]) for name, values in self.timed.parts.items()}
        useful_s = self.flops / chips / self.on.peak_flops_per_s
        accounts = {"useful_maths": useful_s} | {name: sum(parts[p] for p in of) for name, of in LEDGER.items()}
        accounts["below_roofline"] = seconds - sum(accounts.values())
        taken, again = float(self.taken[at]), float(self.again[at])
        return Planned(
            chip=self.on.chip,
            chips=chips,
            layout=self.layouts.one(at),
            step_s=seconds,
            low_s=seconds * self.known.low,
            high_s=seconds * self.known.high,
            flops_per_s_per_chip=self.flops / chips / seconds,
            mfu=useful_s / seconds,
            tokens_per_s_per_chip=self.tokens / chips / seconds,
            bytes_per_chip=taken,
            hbm_bytes=self.on.hbm_bytes,
            recomputed=again,
            tight=taken > NEAR * self.on.hbm_bytes and (again >= 1 or int(self.layouts.remat[at]) != PART),
            published=self.known.runs,
            accounts=accounts,
            parts=parts,
        )


def check_fixed(fixed: Mapping[str, int], chips: int) -> None:
    """Raises QuestionError for axes that a number of chips cannot have."""
    cut = math.prod(v for k, v in fixed.items() if k in ("tensor", "context", "pipeline", "expert", "fsdp", "data"))
    if cut > chips or chips % cut:
        raise QuestionError(
            f"a layout that cuts {cut:,} ways, on {chips:,} chips",
            where="layout",
            expected="axes whose product divides the chips",
        )
