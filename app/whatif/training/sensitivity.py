"""Days and dollars of a choice were its MFU, its goodput or its price another: exact, since they are products.

days = tokens / (rate x MFU x goodput), dollars = days x chips x price: the days go with the inverse of MFU and goodput,
the dollars with that and the price.
"""

from dataclasses import dataclass
from typing import Any

from app.whatif.training.choice import Choice

MFU, GOODPUT, PRICE = 0.1, 0.05, 0.2  # a tenth of the MFU, five points of goodput, a fifth of the price


@dataclass(frozen=True)
class Moved:
    """`what` (mfu, goodput, price) at `value`, and the likely days and dollars then."""

    what: str
    value: float
    days: float
    usd: float | None

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


def sensitivity(choice: Choice) -> tuple[Moved, ...]:
    """Each moved alone; none without tokens, of an MFU or goodput that cannot be, of a price that is not given."""
    if choice.days is None:
        return ()
    days, usd = choice.days[1], None if choice.usd is None else choice.usd[1]
    mfu, goodput = choice.planned.mfu, choice.goodput

    def at(what: str, value: float, longer: float, dearer: float = 1.0) -> Moved:
        return Moved(what, value, days * longer, None if usd is None else usd * longer * dearer)

    found = [at("mfu", mfu * by, 1 / by) for by in (1 - MFU, 1 + MFU) if mfu * by <= 1]
    found += [at("goodput", g, goodput / g) for g in (goodput - GOODPUT, goodput + GOODPUT) if 0 < g <= 1]
    if choice.price is not None and usd is not None:
        found += [at("price", choice.price * by, 1.0, by) for by in (1 - PRICE, 1 + PRICE)]
    return tuple(found)
