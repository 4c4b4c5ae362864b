"""From the rate of a step to tokens a day that count, days and dollars, when chips fail.

    goodput     of a job's own length: as many lives of it as are asked for (`simulators.training.lives`), their mean
                and what nine of ten lie between
    tokens/day  rate x goodput                 days = tokens / (rate x goodput)
    dollars     price x hours x (chips + those of the spares), which are paid for as well

A job long enough to see many failures is drawn for as long as MANY of them take: its range is that of the shorter
one over the square root of how many times as long it is, about the goodput of a life without end.

The rate and the luck of lives are each a likely value with two ends that nine of ten lie between, independent of one
another: of their product the ends lie where the squares of both distances, as ratios, add up. Whatever follows from a
band by division has its ends turned round.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from errors import QuestionError
from errors import format as fmt
from simulators.checkpointing import LONGEST_S
from simulators.training.cost import DAY_S, HOUR_S
from simulators.training.lives import HIGH, LOW, Life, live

LIVES = 200
MANY = 40  # failures: from here on their sum is close to normal
SETTLED = 20  # waits of an elastic job: from here on as many slices are away as ever
LEAST = 1e-3  # of the time: a job that keeps less gets nowhere


@dataclass(frozen=True, kw_only=True)
class Band:
    """A likely value, and between what nine of ten lie."""

    low: float
    likely: float
    high: float

    def times(self, factor: float) -> "Band":
        """In another unit; `factor` above 0."""
        return Band(low=self.low * factor, likely=self.likely * factor, high=self.high * factor)

    def under(self, amount: float) -> "Band":
        """`amount` over this: of a rate, the time that the amount takes."""
        least = amount / self.low if self.low > 0 else math.inf
        return Band(low=amount / self.high, likely=amount / self.likely, high=least)


def sure(value: float) -> Band:
    """A value that is taken as it is."""
    return Band(low=value, likely=value, high=value)


def both(a: Band, b: Band) -> Band:
    """The product of two independent bands, all values above 0 (a low end may be 0)."""
    likely = a.likely * b.likely
    down = math.hypot(_apart(a.low, a.likely), _apart(b.low, b.likely))
    up = math.hypot(_apart(a.likely, a.high), _apart(b.likely, b.high))
    return Band(low=likely * math.exp(-down), likely=likely, high=likely * math.exp(up))


def _apart(low: float, high: float) -> float:
    return math.log(high / low) if low > 0 else math.inf


@dataclass(frozen=True, kw_only=True)
class EndToEnd:
    """What becomes of a job: goodput, tokens a day that count, days, and dollars (None without tokens or a price)."""

    goodput: Band
    tokens_per_day: Band
    days: Band | None
    usd: Band | None


def end_to_end(
    rate: Band,
    kept: Band,
    tokens: float | None,
    usd_per_hour: float | None = None,
) -> EndToEnd:
    """`rate`: tokens/s of the whole job while steps run; `kept`: its goodput; `usd_per_hour`: of all that is held."""
    counted = both(rate, kept)
    seconds = None if tokens is None else counted.under(tokens)
    return EndToEnd(
        goodput=kept,
        tokens_per_day=counted.times(DAY_S),
        days=seconds and seconds.times(1 / DAY_S),
        usd=None if seconds is None or usd_per_hour is None else seconds.times(usd_per_hour / HOUR_S),
    )


def length_s(life: Life, work_s: float) -> float:
    """How long `work_s` of kept work takes the job of `life` with the restart that it begins with, whatever that life's
    own length, were there spares without end. Raises QuestionError where next to nothing is kept, and for what would
    outlast LONGEST_S."""
    share = replace(life, spares=0, repair_s=0.0).closed_form() or 0.0
    if share < LEAST:
        raise QuestionError(
            f"a job that fails every {fmt.duration(life.job.mttf_s)} keeps {fmt.share(share)} of its time",
            expected=f"at least {fmt.share(LEAST)}",
            advice="Fewer chips, shorter saves and restarts, or chips that fail less often",
        )
    whole_s = life.job.restart_s + work_s / share
    if whole_s > LONGEST_S:
        raise QuestionError(f"{work_s:.3g} s of work", expected=f"no more than {LONGEST_S:.0e} s in all")
    return whole_s


@lru_cache(maxsize=4096)
def kept(life: Life, lives: int = LIVES, seed: int = 0) -> Band:
    """The goodput of a job of that length: likely, and between what nine of ten lives lie."""
    drawn = _shorter(life)
    shares = live(drawn, lives, seed).goodput
    mean = float(shares.mean())
    closed = life.closed_form()
    exact = drawn.span_s < life.span_s and life.slices == 1 and closed is not None
    first = life.job.restart_s * (1 / drawn.span_s - 1 / life.span_s)  # the start counts less in a longer life
    likely = closed if exact and closed is not None else mean * (1 + max(first, 0.0))
    narrower = math.sqrt(drawn.span_s / life.span_s)
    low, high = (likely + (float(p) - mean) * narrower for p in np.percentile(shares, (LOW, HIGH)))
    return Band(low=min(max(low, 0.0), likely), likely=likely, high=max(min(high, 1.0), likely))


def _shorter(life: Life) -> Life:
    """As much of a life as tells how far lives lie apart; all of one with spares, whose queue takes long to settle."""
    enough = max(MANY * life.job.mttf_s, SETTLED * life.job.wait_s)
    return life if life.spares or enough >= life.span_s else replace(life, span_s=max(enough, life.interval_s))
