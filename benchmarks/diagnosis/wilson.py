"""A share with its interval: Wilson's, which holds for few cases and at 0 and 1."""

from dataclasses import dataclass
from typing import Any

Z = 1.959964
"""Of an interval of 95 %."""


@dataclass(frozen=True)
class Share:
    """`hits` of `count`. Without a count there is no share."""

    hits: int
    count: int

    @property
    def value(self) -> float | None:
        return self.hits / self.count if self.count else None

    @property
    def interval(self) -> tuple[float, float] | None:
        if not self.count:
            return None
        n, p = self.count, self.hits / self.count
        middle, half = p + Z * Z / (2 * n), Z * (p * (1 - p) / n + Z * Z / (4 * n * n)) ** 0.5
        below = 1 + Z * Z / n
        return max((middle - half) / below, 0.0), min((middle + half) / below, 1.0)

    def to_dict(self) -> dict[str, Any]:
        low, high = self.interval or (None, None)
        return {"hits": self.hits, "count": self.count, "share": self.value, "low": low, "high": high}

    def __str__(self) -> str:
        if not self.count:
            return "-"
        low, high = self.interval or (0.0, 1.0)
        return f"{self.hits}/{self.count} ({low:.0%}-{high:.0%})".replace("%-", "-").replace("%)", " %)")
