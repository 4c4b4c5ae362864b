"""When a trace was taken: where its times lie on the calendar, and which of them cannot belong to it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

TEN_DAYS_NS = 864_000_000_000_000
HOUR_NS = 3_600_000_000_000
EPOCH_NS = 10**17  # a time beyond it counts from 1970, one below from the start of something else


@dataclass(frozen=True)
class Span:
    """`start_ns`: the first time of the trace as it is written; `shift_ns`: what makes it a time since 1970;
    `dated`: whether that is known."""

    start_ns: int
    shift_ns: int
    dated: bool

    @property
    def epoch_ns(self) -> int:
        """The start of the capture, ns since 1970."""
        return self.start_ns + self.shift_ns

    def near(self, start: np.ndarray, dur: np.ndarray) -> np.ndarray:
        """Which times lie within ten days of the start: others are damage, and tables have no room for them. So is a
        time of 0 more than an hour before the start: profilers write it for times that they do not know."""
        told = (start != 0) | (self.start_ns < HOUR_NS)
        return (np.abs(start - self.start_ns) < TEN_DAYS_NS) & (dur < TEN_DAYS_NS) & told

    def ps(self, start: np.ndarray) -> np.ndarray:
        """Times as ps since the start of the capture."""
        return (start - self.start_ns) * 1000


def span_of(starts: np.ndarray, first: np.ndarray, base: Any) -> Span:
    """The span of a trace from a sample of its starts, sorted, and from those that are to be the first if they lie near
    most others; `base`: its `baseTimeNanoseconds`, if any."""
    middle = int(starts[len(starts) // 2]) if len(starts) else 0
    near = first[np.abs(first - middle) < TEN_DAYS_NS] if len(first) else first
    known = near[near != 0]
    near = known if len(known) and known.min() > HOUR_NS else near
    start = int(near.min()) if len(near) else middle
    shift = base if isinstance(base, int) and not isinstance(base, bool) and 0 < base < 1 << 62 else 0
    if start > EPOCH_NS:
        shift = 0
    return Span(start, shift, start + shift > EPOCH_NS)
