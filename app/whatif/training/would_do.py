"""Which limits would do where no choice keeps those that were asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.whatif.training.choice import Choice


@dataclass(frozen=True)
class WouldDo:
    """A limit that a choice would keep: `days` or `usd` of at least `value`, with `choice`, all other limits kept
    (`alone`: not they); or `chips`, the least number that was not asked for and keeps every limit."""

    limit: str
    value: float
    choice: Choice
    alone: bool

    def to_dict(self) -> dict[str, Any]:
        p = self.choice.planned
        told = {"limit": self.limit, "value": self.value, "chip": p.chip, "chips": p.chips}
        return {**told, "others_kept": not self.alone}


def would_do(choices: Sequence[Choice]) -> tuple[WouldDo, ...]:
    """Where no choice keeps every limit: for each limit the least value with which one that was tried would.

    Of choices that keep the others the one that takes least of it, else of all.
    """
    if not choices or any(c.feasible for c in choices):
        return ()
    found = list[WouldDo]()
    for name in choices[0].limits:
        told = [c for c in choices if getattr(c, name) is not None]
        keep = [c for c in told if all(k.likely for other, k in c.limits.items() if other != name)]
        if not told:
            continue
        least = min(keep or told, key=lambda c: getattr(c, name)[1])
        found.append(WouldDo(name, getattr(least, name)[1], least, not keep))
    return tuple(w for w in found if not w.choice.meets[w.limit])
