"""Published runs as cases for the step's model: what they ran, on what, and how long a step took.

A case has every layout that its source leaves open, of which the fastest that fits counts: who publishes a figure has
tuned it. Sources that print no step's time print tokens or model FLOPs a second and chip; by the convention in which
they are counted the step's time follows. Shapes of models that the catalogue does not hold are given here: MPT of
llm-foundry's configurations, the GPTs of arXiv 2104.04473 and 2205.05198, and MaxText's defaults, whose batches and
layouts stand in the scripts beside their tables (`scripts`). Runs of Megatron Bridge count and run the layers that
predict further tokens: so does their case.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from catalog.chips import chips
from catalog.flops import flops_per_token
from catalog.models import Model, models
from catalog.published import PublishedRun, published
from errors import QuestionError
from simulators.training.efficiency import Efficiency, generation
from simulators.training.layout import REMATS, Layouts, legal
from simulators.training.machine import PEAKS, Floats, Machine, machine
from simulators.training.memory import memory
from simulators.training.scripts import GATED, SLICES, script
from simulators.training.step import AtPeaks, at_peaks, steps
from simulators.training.work import Work, work
from simulators.training.written import MEGATRON, Written

SHAPES: dict[str, tuple[int, int, int, int]] = {  # width, layers, heads, vocabulary; d_ff is 4 widths, no gate
    "MPT-125m": (768, 12, 12, 50_368),
    "MPT-350m": (1024, 24, 16, 50_368),
    "MPT-760m": (1536, 24, 12, 50_368),
    "MPT-1b": (2048, 24, 16, 50_368),
    "MPT-3b": (2560, 32, 20, 50_368),
    "MPT-7b": (4096, 32, 32, 50_368),
    "MPT-13b": (5120, 40, 40, 50_368),
    "MPT-30b": (7168, 48, 56, 50_368),
    "MPT-70b": (8192, 80, 64, 50_368),
    "GPT 1.7B": (2304, 24, 24, 51_200),
    "GPT 3.6B": (3072, 30, 32, 51_200),
    "GPT 22B": (6144, 48, 64, 51_200),
    "GPT 39.1B": (8192, 48, 64, 51_200),
    "GPT 145.6B": (12_288, 80, 96, 51_200),
    "GPT 310.1B": (16_384, 96, 128, 51_200),
    "GPT 529.6B": (20_480, 105, 128, 51_200),
}
FLASHLESS = ("arXiv:2104.04473", "arXiv:2205.05198")  # before attention that does not write its scores
AXES = {"tensor": "tensor", "pipeline": "pipeline", "context": "context", "virtual_pipeline": "interleave"}
FINALISTS = 60  # layouts of a case that are kept for fitting: the best by rates that nothing was fitted to


@dataclass(frozen=True)
class Case:
    """A published run, the layouts it may have had, and the seconds of its step."""

    run: PublishedRun
    work: Work
    machine: Machine
    layouts: Layouts
    again: Floats
    batch: int
    step_s: float
    peaks: AtPeaks

    @property
    def source(self) -> str:
        """Where it stands, without version and section: rows of one source are held back together."""
        return self.run.source.split("@")[0].split(" [")[0]

    @property
    def generation(self) -> str:
        return generation(self.run.chip)

    @property
    def whole(self) -> bool:
        """Whether its source tells the layout."""
        told = script(self.run)
        return "tensor" in self.run.parallelism or (told is not None and told.tensor is not None)

    @property
    def scores(self) -> float:
        """How often attention's scores are read or written: 0 but for what ran before kernels that keep them."""
        return FLASHLESS_SWEEPS if self.run.source.startswith(FLASHLESS) else 0.0

    def predicted_s(self, efficiency: Efficiency) -> float:
        """The step's time by the model: of the fastest layout that fits."""
        return float(self.peaks.timed(replace(efficiency, scores=self.scores)).seconds.min())


FLASHLESS_SWEEPS = 4.0  # a fused softmax and a dropout mask read and write each score once


@cache
def cases() -> tuple[Case, ...]:
    """Every published pretraining run of which model, chip, precision, sequence, batch and rate are known."""
    return tuple(case for run in published() if (case := made(run)) is not None)


def shape(name: str) -> Model | None:
    """A model of the catalogue, one of SHAPES, or one of MaxText's defaults."""
    if name in models() or name not in {**SHAPES, **GATED}:
        return models().get(name)
    width, layers, heads, last = {**SHAPES, **GATED}[name]
    like = models()["gpt3-175b"]
    gated = name in GATED
    size = 128 if gated else width // heads
    attention = replace(like.attention[0], heads=heads, kv_heads=heads, head_dim=size, value_head_dim=size)
    block = replace(like.feedforward[0], d_ff=last if gated else 4 * width, gated=gated)
    return replace(
        like,
        name=name,
        layers=layers,
        d_model=width,
        vocab=32_000 if gated else last,
        tied_embeddings=not gated and like.tied_embeddings,
        attention=(attention,) * layers,
        feedforward=(block,) * layers,
    )


def made(run: PublishedRun, written: Written | None = None) -> Case | None:
    """A published run as a case; None where one of its numbers is not known, or no layout of it fits. `written`: as
    its source tells, None: as is usual."""
    model, told = shape(run.model), script(run)
    if model is None or run.task != "pretraining" or run.precision not in PEAKS:
        return None
    seq = told.seq if told else run.seq
    tokens = told.batch * told.seq * run.chips if told else run.global_batch_tokens
    if seq is None or tokens is None or not (rate := _tokens_per_s(run, model, seq)):
        return None
    batch = round(tokens / seq)
    try:
        on = machine(chips()[run.chip], run.precision)
    except QuestionError:  # a peak that nobody published
        return None
    on = replace(on, domain=min(on.domain, run.chips // SLICES.get(run.id, 1)) if on.torus else on.domain)
    model = _with_further_tokens(model) if run.convention == "megatron" else model
    found = _layouts(run, model, batch, seq, on)
    held = memory(model, found, seq, on.hbm_bytes, batch)
    fits = held.bytes <= on.hbm_bytes * (1 + 1e-9)
    if not fits.any():
        return None
    found, again = found.take(fits), held.again[fits]
    terms, written = work(model, seq), written or _written(run)
    first = np.argsort(steps(terms, found, again, batch, on, Efficiency(), written).seconds)[:FINALISTS]
    found, again = found.take(first), again[first]
    step_s = tokens / run.chips / rate
    return Case(run, terms, on, found, again, batch, step_s, at_peaks(terms, found, again, batch, on, written))


def _written(run: PublishedRun) -> Written | None:
    """What a source's program lacked: sequence parallelism came with arXiv 2205.05198."""
    return replace(MEGATRON, sequence_parallel=False) if run.source.startswith(FLASHLESS[0]) else None


def _with_further_tokens(model: Model) -> Model:
    """The model with its prediction layers as further layers: what they compute but for a second output projection."""
    extra = model.mtp_layers
    return replace(
        model,
        layers=model.layers + extra,
        attention=model.attention + model.attention[-1:] * extra,
        feedforward=model.feedforward + model.feedforward[-1:] * extra,
    )


def _tokens_per_s(run: PublishedRun, model: Model, seq: int) -> float | None:
    if run.tokens_per_s_per_chip:
        return run.tokens_per_s_per_chip
    if run.flops_per_s_per_chip is None:
        return None
    if run.convention == "hardware_full_remat":  # four forwards where the model needs three
        return run.flops_per_s_per_chip / (flops_per_token(model, seq, "noncausal").total * 4 / 3)
    return run.flops_per_s_per_chip / flops_per_token(model, seq, run.convention or "causal").total


def _layouts(run: PublishedRun, model: Model, batch: int, seq: int, on: Machine) -> Layouts:
    """What the source says is fixed. Experts are told as ways over tensor parallelism and copies together."""
    fixed = {axis: run.parallelism[name] for name, axis in AXES.items() if run.parallelism.get(name)}
    again = {"full": "full", "none": "none"}.get(run.recomputation or "", "part")
    if told := script(run):
        again = told.remat or "part"
        fixed |= {"tensor": told.tensor, "context": 1, "pipeline": 1} if told.tensor else {}
        fixed |= {"fsdp": told.fsdp} if told.fsdp else {}
        if told.tensor and told.tensor > 1 and on.torus:
            fixed["fsdp"] = on.domain // told.tensor  # the rest of a slice
    elif fixed:
        fixed = {"context": 1, **fixed}
        ways = run.chips // (fixed.get("tensor", 1) * fixed["context"] * fixed.get("pipeline", 1))
        fixed["expert"] = _experts(run.parallelism.get("expert", 1), fixed.get("tensor", 1), ways)
    fixed["remat"] = REMATS.index("full" if run.convention == "hardware_full_remat" else again)
    return legal(model, run.chips, batch, seq, domain=on.domain, fixed=fixed)


def _experts(told: int, tensor: int, ways: int) -> int:
    """Ways over copies of what is told as ways over these and tensor parallelism."""
    return min(max(told // tensor, 1), max(ways, 1))


def by_source(of: Sequence[Case]) -> Iterator[tuple[str, list[Case]]]:
    """The cases of each source."""
    for source in sorted({case.source for case in of}):
        yield source, [case for case in of if case.source == source]
