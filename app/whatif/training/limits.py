"""Whether a choice keeps a deadline and a budget, at each end of its range, and what would do where none does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from app.whatif.training.answers import Choice

Range = tuple[float, float, float]
WORDS = ("no", "perhaps", "likely", "yes")


@dataclass(frozen=True)
class Kept:
    """Whether a limit is kept at the low end of the range, at its likely value and at its high end."""

    low: bool
    likely: bool
    high: bool

    @property
    def word(self) -> str:
        """`yes` at all of them, `likely`, `perhaps` (at the low end alone) or `no`."""
        return WORDS[self.low + self.likely + self.high]

    def to_dict(self) -> dict[str, Any]:
        return {"low": self.low, "likely": self.likely, "high": self.high, "word": self.word}


def kept(limits: Mapping[str, float | None], days: Range | None, usd: Range | None) -> dict[str, Kept]:
    """Of each limit that is set, `days` and `usd`. Without a price a budget is not known to be kept: so it is not."""
    ranges = {"days": days, "usd": usd}
    return {
        name: Kept(*(value <= limit for value in values)) if (values := ranges[name]) else Kept(False, False, False)
        for name, limit in limits.items()
        if limit is not None
    }


@dataclass(frozen=True)
class WouldDo:
    """A limit that a choice would keep: `days` or `usd` of at least `value`, with `choice`, all other limits kept
    (`alone`: not they)."""

    limit: str
    value: float
    choice: "Choice"
    alone: bool

    def to_dict(self) -> dict[str, Any]:
        p = self.choice.planned
        told = {"limit": self.limit, "value": self.value, "chip": p.chip, "chips": p.chips}
        return {**told, "others_kept": not self.alone}


def would_do(choices: Sequence["Choice"]) -> tuple[WouldDo, ...]:
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
