"""Whether a deadline and a budget are kept, at each end of a range."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
