"""Why chips, numbers of them and layouts are not the best choice: of a kind, in words, and with the nearest that is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.whatif.training.choice import Choice
from app.whatif.training.phrases import lost
from app.whatif.training.same_loss import same_loss
from errors import format as fmt
from simulators.training.cost import HOUR_S
from simulators.training.losing import larger
from simulators.training.refused import NoLayout


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why not.

    kind     memory, batch, divisibility, axes (no layout); number (the catalogue lacks one); unpriced, slice, assumed
             (to be known of what is listed); failures (chips fail too often); deadline, budget; peak, roofline,
             memory, network, bubbles, launch (an account of the step is larger than the best choice's); tie
    account  of the step, in `unit`: larger `by` so much, `total` all of them together
    try_chips, try_batch_tokens   the nearest that would do
    """

    kind: str
    text: str
    chip: str
    chips: int | None = None
    layout: dict[str, int | str] | None = None
    account: str | None = None
    by: float | None = None
    total: float | None = None
    unit: str | None = None
    try_chips: tuple[int, ...] = ()
    try_batch_tokens: int | None = None

    def to_dict(self) -> dict[str, Any]:
        told = {**vars(self), "try_chips": list(self.try_chips)}
        return {name: value for name, value in told.items() if value not in (None, [])}


def refused(why: NoLayout, chip: str, chips: int, seq: int, tokens: float | None) -> Reason:
    """Of a number of chips without a layout; of one that only a larger batch could feed, what such a batch costs."""
    batch, text = None if why.batch is None else why.batch * seq, why.text
    if batch is not None and (cost := same_loss(tokens, batch)):
        least, most = map(fmt.share, cost.more)
        text += f" Such a batch takes {least} to {most} more tokens to the same loss."
    return Reason(kind=why.kind, text=text, chip=chip, chips=chips, try_chips=why.chips, try_batch_tokens=batch)


@dataclass(frozen=True)
class Scale:
    """What chip-seconds of a step are counted as: dollars of the job, its chip-hours, or as they are."""

    unit: str
    steps: float = 1.0

    def of(self, choice: Choice) -> float:
        """What a chip-second of a step of this choice counts."""
        if self.unit == "chip_seconds":
            return 1.0
        hours = self.steps / HOUR_S / choice.goodput
        if self.unit != "usd" or choice.usd is None or choice.days is None:
            return hours
        of_steps = choice.days[1] * 24 * choice.planned.chips  # spares are paid for beside: each chip-hour costs more
        return hours * choice.usd[1] / of_steps


def scale(choices: Sequence[Choice], tokens: float | None, batch_tokens: int) -> Scale:
    """Dollars where every choice has a price, chip-hours where tokens are known, else chip-seconds of a step."""
    if tokens is None:
        return Scale("chip_seconds")
    priced = all(c.usd is not None for c in choices)
    return Scale("usd" if priced else "chip_hours", tokens / batch_tokens)


def losers(choices: Sequence[Choice], tokens: float | None, batch_tokens: int) -> tuple[Reason, ...]:
    """Why each choice but the first is not the best, the first being the best or nearest to it."""
    if not choices:
        return ()
    first, *others = choices
    by = scale(choices, tokens, batch_tokens)
    found = list[Reason]()
    for one in others:
        p = one.planned
        more = larger(p, first.planned, by.of(one), by.of(first))
        broken = [name for name, keeps in one.meets.items() if not keeps and first.meets.get(name)]
        limit = {"days": "deadline", "usd": "budget"}.get(broken[0]) if broken else None
        told: dict[str, Any] = {"chip": p.chip, "chips": p.chips, "layout": p.layout}
        if more is not None:
            told |= {"account": more.account, "by": more.by, "total": more.total, "unit": by.unit}
        kind = limit or (more.kind if more else "tie")
        found.append(Reason(kind=kind, text=lost(one, kind, more, by.unit), **told))
    return tuple(found)
