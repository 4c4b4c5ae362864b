"""Why a number of chips has no layout of a job, by kind, and the nearest that has one.

memory        some layouts divide, the smallest of them does not fit
batch         the batch has fewer sequences than these chips have copies of the model
axes          nothing divides with the axes that are fixed
divisibility  nothing divides what is to be cut: sequences, layers, heads
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from catalog.models import Model
from simulators.training.layout import (
    LEAST_TOKENS,
    MOST_TENSOR,
    REMATS,
    SHORT,
    divisors,
    legal,
    nearest,
    stages,
    tensors,
)
from simulators.training.machine import machine
from simulators.training.memory import memory
from simulators.training.plan import ROUNDED, Found

MOST_CHIPS = 1 << 20  # up to which a number that fits is looked for


@dataclass(frozen=True, kw_only=True)
class NoLayout:
    """`chips`: the nearest numbers that have a layout; `batch`: the least sequences of a step that these chips can be
    fed with. Empty and None: that is not what is lacking."""

    kind: str
    text: str
    chips: tuple[int, ...] = ()
    batch: int | None = None


def no_layout(
    found: Found,
    model: Model,
    batch: int,
    seq: int,
    fixed: Mapping[str, int] | None = None,
    precision: str = "bf16",
    remat: str = "part",
) -> NoLayout | None:
    """Why a number of chips has no layout; None where it has one."""
    if found.layouts:
        return None
    if found.tried:
        return _too_small(found, model, batch, seq, dict(fixed or {}), precision, remat)
    return _none_divides(found, model, batch, seq, fixed or {})


def _what(found: Found) -> str:
    return f"{found.chips:,} {found.chip.name}"


def _too_small(
    found: Found, model: Model, batch: int, seq: int, fixed: dict[str, int], precision: str, remat: str
) -> NoLayout:
    need = math.ceil(found.chips * found.least_bytes / found.hbm_bytes)
    enough = _enough(found, model, batch, seq, fixed, precision, remat)
    said = (
        f"{_what(found)}: {model.name} does not fit. The smallest of {found.tried:,} layouts takes "
        f"{found.least_bytes / 1e9:,.0f} GB of the {found.hbm_bytes / 1e9:,.0f} GB of a chip; from about {need:,} on "
        f"it may{f', {enough:,} chips do' if enough else ''}."
    )
    if remat == "none" and _fits(found, found.chips, model, batch, seq, fixed, precision, "part"):
        said += " It fits where layers are computed again (remat part)."
    return NoLayout(kind="memory", text=said, chips=(enough,) if enough else ())


def _enough(
    found: Found, model: Model, batch: int, seq: int, fixed: dict[str, int], precision: str, remat: str
) -> int | None:
    """The least number of chips that has a layout that fits, of this one doubled again and again."""
    number = 2 * found.chips
    while number <= MOST_CHIPS:
        if _fits(found, number, model, batch, seq, fixed, precision, remat):
            return number
        number *= 2
    return None


def _fits(
    found: Found, chips: int, model: Model, batch: int, seq: int, fixed: dict[str, int], precision: str, remat: str
) -> bool:
    on = machine(found.chip, precision)
    some = legal(model, chips, batch, seq, domain=on.domain, fixed={**fixed, "remat": REMATS.index(remat)})
    return len(some) > 0 and bool((memory(model, some, seq, on.hbm_bytes, batch).bytes <= on.hbm_bytes * ROUNDED).any())


def _none_divides(found: Found, model: Model, batch: int, seq: int, fixed: Mapping[str, int]) -> NoLayout:
    asked = ", ".join(f"{short} {fixed[name]:,}" for short, name in SHORT.items() if name in fixed)
    said = (
        f"{_what(found)}: no layout{f' with {asked}' if asked else ''} divides {batch:,} sequences of {seq:,} tokens "
        f"and the {model.layers} layers of {model.name}"
    )
    if asked:
        if why := _cut_wrong(model, found.chips, seq, fixed):
            return NoLayout(kind="axes", text=f"{_what(found)}: {why}.")
        return NoLayout(kind="axes", text=f"{said}; free some of the axes.")
    domain = int(found.chip.need("scaleup_domain_chips"))
    near = nearest(model, found.chips, batch, seq, domain)
    if near:
        said += f"; the nearest that have some: {' and '.join(f'{n:,}' for n in near)} chips"
    least = least_batch(model, found.chips, seq, domain)
    if least is not None and least > batch:
        more = f"so many can be fed from {least:,} sequences a step on, {least * seq:,} tokens"
        return NoLayout(kind="batch", text=f"{said}; {more}.", chips=tuple(near), batch=least)
    return NoLayout(kind="divisibility", text=f"{said}.", chips=tuple(near))


def _cut_wrong(model: Model, chips: int, seq: int, fixed: Mapping[str, int]) -> str:
    """What a fixed axis cuts and does not divide, with the nearest sizes that do; empty where it is none of these."""
    expert, tensor, context = (fixed.get(name, 1) for name in ("expert", "tensor", "context"))
    experts = max((b.experts for b in model.feedforward), default=0)
    if expert > 1 and not experts:
        return f"{model.name} has no experts that ep {expert:,} could deal out; leave ep away"
    if experts and experts % expert:
        near = _beside(divisors(experts), expert)
        return f"ep {expert:,} does not divide the {experts:,} experts of {model.name}; {near}"
    ways = tensors(model, chips)
    if tensor not in ways:
        what = f"the heads and feed-forward widths of {model.name}"
        return f"tp {tensor:,} does not divide {what}; {_beside(ways, tensor)}"
    if (pipeline := fixed.get("pipeline", 1)) > model.layers:
        return f"pp {pipeline:,} is more than the {model.layers} layers of {model.name}"
    if seq % (context * tensor):
        near = _beside(divisors(seq // math.gcd(seq, tensor)), context)
        return f"cp {context:,} and tp {tensor:,} do not divide {seq:,} tokens; {near} for cp"
    return ""


def _beside(sizes: list[int], asked: int) -> str:
    """The sizes next to what was asked, in words."""
    below, above = [s for s in sizes if s < asked], [s for s in sizes if s > asked]
    near = [f"{n:,}" for n in ([max(below)] if below else []) + ([min(above)] if above else [])]
    return f"the nearest that {'does is' if len(near) == 1 else 'do are'} {' and '.join(near)}"


def least_batch(model: Model, chips: int, seq: int, domain: int) -> int | None:
    """The least sequences of a step with which some layout uses all of so many chips; None: no batch does.

    The copies of the model, chips / (t c p), each take a sequence at least.
    """
    copies = [
        chips // (tensor * context * pipeline)
        for tensor in tensors(model, min(domain, MOST_TENSOR))
        for context in divisors(seq, max(seq // LEAST_TOKENS, 1))
        if seq % (context * tensor) == 0
        for pipeline in stages(model, model.layers)
        if chips % (tensor * context * pipeline) == 0
    ]
    return min(copies, default=None)
