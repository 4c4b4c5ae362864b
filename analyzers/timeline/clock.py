"""The clock of a timeline: ticks since the first of its events."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analyzers.timeline.lanes import PS_PER_NS
from analyzers.timeline.pyramid import Ints

LONGEST_NS = (1 << 62) // PS_PER_NS  # beyond, some 53 days, times are whole nanoseconds


@dataclass(frozen=True)
class Clock:
    """Ticks since `origin_ns`, `per_ns` to a nanosecond, of which the first is `begin`."""

    origin_ns: int
    per_ns: int
    begin: int
    dated: bool

    def since(self, base_ns: Ints, dated: NDArray[np.bool_]) -> Ints:
        """Ticks from the origin to the base of stretches; those without a time of day begin with the first that has
        one. Where none has, the origin is of their own clock."""
        away = np.where(dated | (not self.dated), base_ns - self.origin_ns, 0)
        return away * self.per_ns

    def ticks(self, times: Ints, since: Ints, per_ns: Ints) -> Ints:
        """Times of stretches, each `per_ns` to a nanosecond since so many ticks."""
        odd = per_ns != self.per_ns  # either is 1
        if odd.any():
            times = np.where(odd, times * self.per_ns // per_ns, times)
        return since + times - self.begin


def clock_of(told: dict[str, Ints]) -> Clock:
    """That of all stretches, as `PutDown` tells them."""
    base, per_ns, dated = told["base_ns"], told["per_ns"], told["dated"] > 0
    some = dated if dated.any() else ~dated
    origin = int((base + told["begin"] // per_ns)[some].min())
    last = int((base + told["end"] // per_ns)[some].max())
    rough = Clock(origin, PS_PER_NS if last - origin < LONGEST_NS else 1, 0, bool(dated.any()))
    begin = int(rough.ticks(told["begin"], rough.since(base, dated), per_ns).min())
    return replace(rough, begin=min(begin // rough.per_ns * rough.per_ns, 0))  # undated beside dated ones
