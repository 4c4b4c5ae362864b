"""Layouts of a training job, column by column: how many ways each axis cuts, and what is legal for a model.

`tensor`, `context`, `pipeline` (of `interleave` chunks a stage), `expert`, `fsdp` and `data` are the axes of
`catalog.training_memory.Sharding`; `micro` sequences run at once on a device of the data, fsdp and expert axes, and
`remat` says what the backward pass computes again: an index into REMATS.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Self

import numpy as np
from numpy.typing import NDArray

from catalog.models import Model

Ints = NDArray[np.int64]
REMATS = ("none", "part", "full")
"""What the backward pass computes again: nothing (attention never writes its scores), as many layers as the memory
asks for, all layers."""
MOST_TENSOR = 64
INTERLEAVES = (1, 2, 4, 8)
MICROS = (1, 2, 4, 8, 16)
SHARDS = (8, 16, 32, 64, 256)  # of FSDP beside plain copies, where not all chips share the weights
LEAST_TOKENS = 4096  # of a sequence on a device
ENDS = 2  # the tables of tokens in and out may take a layer's place in a pipeline


@dataclass(frozen=True)
class Layouts:
    """One entry of each array is one layout."""

    tensor: Ints
    context: Ints
    pipeline: Ints
    interleave: Ints
    expert: Ints
    fsdp: Ints
    data: Ints
    micro: Ints
    remat: Ints

    def __len__(self) -> int:
        return len(self.tensor)

    @property
    def chips(self) -> Ints:
        return self.tensor * self.context * self.pipeline * self.replicas

    @property
    def replicas(self) -> Ints:
        """Ways in which the sequences of the batch are dealt out."""
        return self.expert * self.fsdp * self.data

    def take(self, which: NDArray[np.bool_] | Ints) -> Self:
        return replace(self, **{f.name: getattr(self, f.name)[which] for f in fields(self)})

    def one(self, at: int) -> dict[str, int | str]:
        """A layout as it is written: `{"dp": 2, "fsdp": 8, "tp": 4, ...}`."""
        written = {short: int(getattr(self, name)[at]) for short, name in SHORT.items()}
        return {**written, "remat": REMATS[int(self.remat[at])]}


SHORT = {
    "dp": "data",
    "fsdp": "fsdp",
    "tp": "tensor",
    "pp": "pipeline",
    "cp": "context",
    "ep": "expert",
    "vp": "interleave",
    "micro": "micro",
}


def layouts(**columns: int | list[int] | Ints) -> Layouts:
    """Layouts from numbers or lists of equal length; an axis that is not given cuts nothing."""
    given = {
        f.name: np.atleast_1d(np.asarray(columns.get(f.name, f.name != "remat"), np.int64)) for f in fields(Layouts)
    }
    return Layouts(**dict(zip(given, np.broadcast_arrays(*given.values()), strict=True)))


def divisors(n: int, most: int | None = None) -> list[int]:
    """All whole numbers that divide n, up to `most`."""
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    both = sorted({*small, *(n // d for d in small)})
    return [d for d in both if most is None or d <= most]


def legal(
    model: Model, chips: int, batch: int, seq: int, *, domain: int, fixed: Mapping[str, int] | None = None
) -> Layouts:
    """All layouts of a model on so many chips that divide what they cut, `batch` sequences of `seq` tokens a step.

    `domain`: chips that the scale-up network joins; tensor parallelism stays within it unless it is fixed. Context
    parallelism leaves a device 4,096 tokens, which tensor parallelism cuts between its blocks. `fixed`: axes that are
    given; one that cuts what does not divide has no layout.
    """
    none = np.empty((len(fields(Layouts)), 0), np.int64)
    return Layouts(*np.hstack([none, *_Search(model, chips, batch, seq, domain, fixed or {}).blocks()]))


@dataclass(frozen=True)
class _Search:
    """One number of chips: sizes of the axes that may still be chosen, from the innermost outwards."""

    model: Model
    chips: int
    batch: int
    seq: int
    domain: int
    fixed: Mapping[str, int]

    def choices(self, name: str, usual: Iterable[int]) -> list[int]:
        """What is fixed, else what is usual."""
        return [self.fixed[name]] if name in self.fixed else list(usual)

    def blocks(self) -> Iterator[Ints]:
        """A column for each layout; what lies within the copies depends on their number, not on how each is cut."""
        within: dict[tuple[int, int], Ints] = {}
        for tensor in self._tensors():
            for pipeline in self._pipelines(self.chips // tensor):
                for context in self._contexts(self.chips // (tensor * pipeline), tensor):
                    replicas = self.chips // (tensor * pipeline * context)
                    if self.batch % replicas == 0:
                        if (key := (pipeline, replicas)) not in within:
                            within[key] = self._within(pipeline, replicas)
                        inner = within[key]
                        outer = np.array([[tensor], [context], [pipeline]]).repeat(inner.shape[1], axis=1)
                        yield np.vstack([outer, inner])

    def _within(self, pipeline: int, replicas: int) -> Ints:
        rows = [row for expert in self._experts(replicas) for row in self._inner(pipeline, expert, replicas)]
        return np.array(rows, np.int64).reshape(-1, len(fields(Layouts)) - 3).T

    def _tensors(self) -> list[int]:
        usual = tensors(self.model, min(self.chips, self.domain, MOST_TENSOR))
        cuts = tensors(self.model, self.chips)
        return [t for t in self.choices("tensor", usual) if t in cuts and self.chips % t == 0]

    def _pipelines(self, left: int) -> list[int]:
        usual = stages(self.model, left)
        return [p for p in self.choices("pipeline", usual) if p <= self.model.layers and left % p == 0]

    def _contexts(self, left: int, tensor: int) -> list[int]:
        usual = divisors(math.gcd(left, self.seq), max(self.seq // LEAST_TOKENS, 1))
        return [c for c in self.choices("context", usual) if left % c == 0 and self.seq % (c * tensor) == 0]

    def _experts(self, replicas: int) -> list[int]:
        experts = max((b.experts for b in self.model.feedforward), default=0)
        divides = divisors(math.gcd(replicas, experts) if experts else 1)
        return [e for e in self.choices("expert", divides) if e in divides]

    def _inner(self, pipeline: int, expert: int, replicas: int) -> Iterator[tuple[int, ...]]:
        """Chunks of a stage, FSDP beside plain copies, sequences at once, and what is computed again.

        Chunks need a microbatch for each stage: with fewer, the first one's way through all layers is what takes long.
        """
        rest, sequences = replicas // expert, self.batch // replicas
        given, most = self.fixed.get("data"), self.model.layers + ENDS
        shards = {1, rest} | {f for f in SHARDS if rest % f == 0} if given is None else {max(rest // given, 1)}
        chunks = [v for v in self.choices("interleave", INTERLEAVES) if v == 1 or 1 < pipeline <= most // v]
        dealt = [f for f in self.choices("fsdp", sorted(shards)) if rest % f == 0 and given in (None, rest // f)]
        at_once = [m for m in self.choices("micro", MICROS) if sequences % m == 0]
        again = self.fixed.get("remat", REMATS.index("part"))
        for interleave, fsdp, micro in product(chunks, dealt, at_once):
            if interleave == 1 or sequences // micro >= pipeline:
                yield interleave, expert, fsdp, rest // fsdp, micro, again


def nearest(model: Model, chips: int, batch: int, seq: int, domain: int) -> list[int]:
    """The next smaller and the next larger number of chips that some layout uses whole, where there are such."""
    copies = np.array(divisors(batch), np.int64)
    found: list[int] = []
    for tensor in tensors(model, min(domain, MOST_TENSOR)):
        for context in divisors(seq, max(seq // LEAST_TOKENS, 1)):
            for pipeline in stages(model, model.layers) if seq % (context * tensor) == 0 else ():
                at = int(np.searchsorted(copies, chips / (cut := tensor * context * pipeline)))
                found += [int(n) * cut for n in copies[max(at - 1, 0) : at + 1]]
    less, more = [n for n in found if n < chips], [n for n in found if chips < n]
    return [end(of) for end, of in ((max, less), (min, more)) if of]


def stages(model: Model, most: int) -> list[int]:
    """Pipelines that are built: powers of two, and what divides the layers. A first or last stage may hold fewer."""
    return [p for p in range(1, min(model.layers, most) + 1) if p & (p - 1) == 0 or model.layers % p == 0]


def tensors(model: Model, most: int) -> list[int]:
    """Ways of tensor parallelism that divide the query heads and feed-forward widths."""
    widths = {a.heads for a in model.attention} | {b.d_ff for b in model.feedforward}
    return [t for t in divisors(min(widths), most) if all(w % t == 0 for w in widths)]
