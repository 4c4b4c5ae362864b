"""What a step sends along each axis, for every layout at once: the bytes whose time `step` reckons.

T tokens of a microbatch on a device, h the width, t tensor, c context, e expert, f fsdp, d data, p pipeline; 2 bytes
an element of an activation or a gathered weight, g of a gradient. Of a microbatch and a layer, forward:

    tensor    4 gathers or scatters of T h (2 before, 2 after a block); all-reduces where sequences are not cut between
              blocks are as many. None for routed experts that are dealt out whole. Backward as many; a layer computed
              again the same, or but for those after its last product (`pruned`: 3 of 4; of all-reduces 1 of 2)
    context   keys and values around the ring, as far as a window asks for them; backward twice the bytes
    expert    2 all-to-alls of T k h / t, k experts a token; backward 2
    fsdp      weights gathered, forward and backward; their gradients scattered, once a microbatch: a device has no
              room for the whole of them
    pipeline  m v sends of T h / t each way

and of a step gradients over data and context, and over expert of what those devices share: scattered, and the new
weights gathered (ZeRO-1), which is what an all-reduce sends. The tables: rows of tokens and gradients of the output
projection's input are summed over tensor parallelism; either may be gathered over fsdp.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from simulators.training.layout import Layouts
from simulators.training.machine import Floats
from simulators.training.sizes import Sizes, sizes
from simulators.training.work import ELEMENT, Work
from simulators.training.written import Scatter, Written

Kind = Literal["gather", "exchange", "send"]
SWEPT = 0.4  # of what a layer keeps: outputs of norms and activation functions, which a sweep makes again
AXES = ("tensor", "context", "expert", "fsdp", "data", "pipeline")


@dataclass(frozen=True, kw_only=True)
class Sent:
    """Collectives of a kind along an axis of `size` chips, `stride` apart.

    `array_bytes`: of a gather or scatter the whole array, of an exchange or a send what a chip has. `forward`,
    `backward`, `again`: how many of a microbatch, in a pass and in a forward pass done again; `once`: of a step.
    """

    axis: str
    account: str
    kind: Kind
    array_bytes: Floats
    size: Floats
    stride: Floats
    forward: Floats | float = 0.0
    backward: Floats | float = 0.0
    again: Floats | float = 0.0
    once: Floats | float = 0.0

    @property
    def chip_bytes(self) -> Floats:
        """What a chip sends in one of them."""
        part = 1.0 if self.kind == "send" else (self.size - 1) / self.size
        return np.where(self.size > 1, self.array_bytes * part, 0.0)


def axis_bytes(work: Work, layouts: Layouts, again: Floats, batch: int, written: Written) -> dict[str, Floats]:
    """Bytes that a chip sends along each axis in a step of `batch` sequences, `again` the part of the layers computed
    twice."""
    at, whole = sizes(work, layouts, batch, written), dear(again)
    told = {axis: np.zeros(len(layouts)) for axis in AXES}
    for one in sent(work, at, written):
        times = at.microbatches * (one.forward + one.backward + whole * one.again) + one.once
        told[one.axis] = told[one.axis] + times * one.chip_bytes
    return told


def dear(again: Floats) -> Floats:
    """The part of the layers whose products are computed again, where `again` of what they keep is not kept."""
    return np.maximum(again - SWEPT, 0.0) / (1 - SWEPT)


def sent(work: Work, at: Sizes, written: Written) -> Iterator[Sent]:
    """Everything that a device takes part in."""
    yield from _tensor(work, at, written)
    yield from _context(work, at)
    yield from _expert(work, at)
    yield from _fsdp(work, at, written)
    yield from _copies(work, at, written)
    one = ELEMENT * work.width * at.tokens / at.t
    yield Sent(
        axis="pipeline",
        account="sends",
        kind="send",
        array_bytes=one,
        size=at.p,
        stride=at.t * at.c * at.e * at.f * at.d,
        forward=at.v,
        backward=at.v,
    )


def _tensor(work: Work, at: Sizes, written: Written) -> Iterator[Sent]:
    whole, one = ELEMENT * work.width * at.tokens, np.ones_like(at.t)
    blocks = 2 * at.layers - work.moe_layers * at.share * at.whole
    unread = at.layers - work.moe_layers * at.share * at.whole  # last blocks of layers, whose result nothing reads
    left_out = (1.0 if written.sequence_parallel else 2.0) * unread if written.pruned else 0.0
    yield Sent(
        axis="tensor",
        account="tensor",
        kind="gather",
        array_bytes=whole,
        size=at.t,
        stride=one,
        forward=2 * blocks,
        backward=2 * blocks,
        again=2 * blocks - left_out,
    )
    back = written.head_width_bytes / ELEMENT
    ahead = (2.0, 1 + back) if written.sequence_parallel else (2.0, 2 * back)
    yield Sent(
        axis="tensor",
        account="vocabulary",
        kind="gather",
        array_bytes=whole,
        size=at.t,
        stride=one,
        forward=ahead[0] / at.p,
        backward=ahead[1] / at.p,
    )


def _context(work: Work, at: Sizes) -> Iterator[Sent]:
    """Three times what goes around forward: keys and values in both passes, and their gradients."""
    around = ELEMENT * work.keys_around(at.t, at.c) * at.tokens * at.c
    yield Sent(
        axis="context",
        account="context",
        kind="gather",
        array_bytes=around,
        size=at.c,
        stride=at.t,
        forward=at.layers,
        backward=2 * at.layers,
    )


def _expert(work: Work, at: Sizes) -> Iterator[Sent]:
    times = 2 * work.moe_layers * at.share
    folded = at.cut <= 1
    yield Sent(
        axis="expert",
        account="expert",
        kind="exchange",
        array_bytes=ELEMENT * work.width * work.visits * at.tokens / at.t,
        size=at.dealt,
        stride=np.where(folded & (at.c <= 1), 1.0, at.t * at.c),
        forward=times,
        backward=times,
        again=times,
    )


def _fsdp(work: Work, at: Sizes, written: Written) -> Iterator[Sent]:
    """Weights gathered twice, of which the output projection's are still there when its backward pass begins where
    XLA looks rows of tokens up; gradients scattered together."""
    layers, routed, head, rows = _weights(work, at)
    looked_up = written.tokens_looked_up
    table = 0.0 if looked_up else rows
    g, of_head = written.gradient_bytes, written.head_gradient_bytes
    gradients = g * (
        (layers + table) * _scattered(written.scattered, at.f) + routed * _scattered(written.experts_scattered, at.f)
    ) + of_head * head * _scattered(written.head_scattered, at.f)
    ahead, back = layers + routed + head + table, layers + routed + (0.0 if looked_up else head + table)
    yield _over_fsdp(at, "gather", ELEMENT * ahead, forward=1)
    yield _over_fsdp(at, "gather", ELEMENT * back, backward=1)
    yield _over_fsdp(at, "gather", gradients, backward=1)
    if looked_up:
        yield _over_fsdp(at, "exchange", ELEMENT * work.width * at.tokens / at.p, forward=1, backward=1)


def _over_fsdp(at: Sizes, kind: Kind, array: Floats, forward: float = 0.0, backward: float = 0.0) -> Sent:
    return Sent(
        axis="fsdp",
        account="exposed",
        kind=kind,
        array_bytes=array,
        size=at.f,
        stride=at.t * at.c * at.e,
        forward=forward,
        backward=backward,
    )


def _scattered(how: Scatter, n: Floats) -> Floats | float:
    """Bytes beside those of a ring's scatter."""
    if how == "windowed":
        return np.where(n > 2, (n + 1) / np.maximum(n - 1, 1.0), 1.0)
    return 2.0 if how == "summed" else 1.0


def _copies(work: Work, at: Sizes, written: Written) -> Iterator[Sent]:
    """Gradients summed over copies of the weights: those of routed experts over data and context, the rest over expert
    too. A scatter of gradients, and a gather of new weights, or of the summed gradients."""
    layers, routed, head, rows = _weights(work, at)
    inner = at.t * at.c * at.e
    g, of_head = written.gradient_bytes, written.head_gradient_bytes
    back = (ELEMENT, ELEMENT) if written.dealt_state else (g, of_head)
    dense = (g + back[0]) * (layers + rows) + (of_head + back[1]) * head
    apart = (g + back[0]) * routed
    for axis, size, stride, array in (
        ("data", at.d * at.c, inner * at.f, dense + apart),
        ("expert", at.e, at.t * at.c, dense),
    ):
        mean = array / (2 * at.f)
        yield Sent(axis=axis, account="exposed", kind="gather", array_bytes=mean, size=size, stride=stride, once=2)


def _weights(work: Work, at: Sizes) -> tuple[Floats, Floats, Floats, Floats]:
    """Parameters that a device works with: of its layers, its routed experts, the output projection and the table of
    tokens, of which a device of a pipeline counts its part."""
    cut = at.t * at.p
    table = work.embedding / (1 if work.tied else 2)
    head, rows = table, 0.0 if work.tied else table
    return (work.dense - work.embedding) / cut, work.routed / (at.e * cut), head / cut, rows / cut
