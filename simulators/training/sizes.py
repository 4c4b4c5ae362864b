"""Sizes of the axes of every layout as floats, and what a device has by them."""

from dataclasses import dataclass

import numpy as np

from simulators.training.layout import Layouts
from simulators.training.machine import Floats
from simulators.training.work import Work
from simulators.training.written import MEGATRON, Written


@dataclass(frozen=True)
class Sizes:
    """t, c, p, v, e, f, d: ways of tensor, context, pipeline, interleave, expert, fsdp and data; an entry a layout.

    tokens        of a microbatch on a device, before tensor parallelism cuts them
    microbatches  of a step
    layers        of the fullest stage; `share` of all layers
    dealt         ways in which routed experts are dealt out whole: e t where that divides their number and the program
                  folds them over tensor parallelism, as Megatron can, else e, and t cuts each
    slice         chips of the job
    """

    t: Floats
    c: Floats
    p: Floats
    v: Floats
    e: Floats
    f: Floats
    d: Floats
    micro: Floats
    tokens: Floats
    microbatches: Floats
    layers: Floats
    share: Floats
    dealt: Floats
    slice: Floats

    @property
    def cut(self) -> Floats:
        """Ways in which tensor parallelism cuts a routed expert."""
        return self.t * self.e / self.dealt

    @property
    def whole(self) -> Floats:
        """1 where routed experts are not cut, so that nothing of theirs is summed over tensor parallelism."""
        return np.where(self.cut > 1, 0.0, 1.0)


def sizes(work: Work, layouts: Layouts, batch: int, written: Written = MEGATRON) -> Sizes:
    """The sizes of every layout, for `batch` sequences a step."""
    names = ("tensor", "context", "pipeline", "interleave", "expert", "fsdp", "data", "micro")
    t, c, p, v, e, f, d, micro = (getattr(layouts, name).astype(float) for name in names)
    layers = np.ceil(work.layers / (p * v)) * v
    return Sizes(
        t=t,
        c=c,
        p=p,
        v=v,
        e=e,
        f=f,
        d=d,
        micro=micro,
        tokens=micro * work.seq / c,
        microbatches=batch / (layouts.replicas * micro),
        layers=layers,
        share=layers / work.layers,
        dealt=np.where(work.experts % (e * t) == 0, e * t, e) if work.experts and written.folded else e,
        slice=layouts.chips.astype(float),
    )
