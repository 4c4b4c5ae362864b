"""What a trace tells of a collective: its kind, its size and its group, from the kernel or from what launched it."""

import math

import numpy as np

from collectors.device.kineto.gather import COLLECTIVE, DTYPE, IN_NELEMS, PG_DESC, PG_NAME, Gathered
from collectors.device.kineto.kernels import collective_kind
from collectors.device.kineto.shapes import element, parsed
from collectors.device.kineto.tokens import NONE

BYTES = "bytes"  # as the element type of a collective: its size is told, its elements are not
_SITE_COLLECTIVE = 5  # column of `Gathered.sites`


def told_of(gathered: Gathered, own: int, site: int, note: int) -> np.ndarray | None:
    """What the trace tells of a collective: with its kernel, else with the call or the annotation around its launch."""
    for number_ in (own, *(int(gathered.sites.rows[s, _SITE_COLLECTIVE]) for s in (site, note) if s >= 0)):
        if number_ >= 0:
            return gathered.collectives.rows[number_]
    return None


def word(gathered: Gathered, kernel: int, told: np.ndarray | None, note: int) -> str:
    """What the trace calls it: by its arguments, its annotation (`nccl:all_reduce`, `ncclAllReduce`), or its kernel."""
    if told is not None and told[COLLECTIVE] >= 0:
        return gathered.texts[int(told[COLLECTIVE])]
    said = gathered.texts[int(gathered.sites.rows[note, 0])] if note >= 0 else ""
    return said if said.startswith(("nccl", "rccl", "hccl", "gloo:", "c10d::")) else gathered.texts[kernel]


def named(gathered: Gathered, kernel: int, own: int, site: int, note: int) -> str:
    """A name that is the same on all ranks: kind and group, not the algorithm that a rank's library chose."""
    told = told_of(gathered, own, site, note)
    kind = collective_kind(word(gathered, kernel, told, note))
    if kind is None:
        kind = collective_kind(gathered.texts[kernel]) or "collective"
    group = "" if told is None else gathered.texts[int(max(told[PG_DESC], -1))]
    if told is not None and group in ("", "undefined"):
        group = gathered.texts[int(max(told[PG_NAME], -1))]
    library = next((name for name in ("gloo", "hccl") if gathered.texts[kernel].startswith(f"{name}:")), "nccl")
    return f"{library}:{kind} {group}".strip()


def size_of(gathered: Gathered, told: np.ndarray | None, note: int) -> tuple[float | None, str | None]:
    """(bytes of the operand, element type)."""
    if told is not None and told[DTYPE] >= 0 and gathered.texts[int(told[DTYPE])] == BYTES:
        return (float(told[IN_NELEMS]) if told[IN_NELEMS] >= 0 else None), None
    kind = element(gathered.texts[int(told[DTYPE])]) if told is not None and told[DTYPE] >= 0 else None
    if told is not None and kind and told[IN_NELEMS] != NONE and told[IN_NELEMS] >= 0:
        return float(told[IN_NELEMS]) * kind[1], kind[0]
    if note < 0:
        return None, kind[0] if kind else None
    _, dims, types, *_ = gathered.sites.rows[note].tolist()
    shapes = parsed(gathered.texts.raw(dims)) if dims >= 0 else []
    kinds = [element(str(t)) for t in parsed(gathered.texts.raw(types))] if types >= 0 else []
    total = 0.0
    for shape, of in zip(shapes, kinds, strict=False):
        if of and isinstance(shape, list) and shape and all(type(d) is int and 0 <= d < 1 << 40 for d in shape):
            total += math.prod(map(float, shape)) * of[1]
    first = next((of[0] for of in kinds if of), None)
    return (total, first) if total else (None, kind[0] if kind else first)
