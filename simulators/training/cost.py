"""How long a training job takes and what it costs, at a utilisation that is given.

With F model FLOPs a token, D tokens, n chips of peak P FLOP/s, utilisation u (MFU), goodput G (the share of the chips'
time that becomes kept steps) and a price of a chip-hour:

    tokens/s and chip = P u / F                 hours      = F D / (n P u G) / 3600
    effective FLOP/s  = n P u G                 chip-hours = n hours,   dollars = price x chip-hours
    dollars per million tokens = 10^6 price / (3600 P u G / F)

Dollars do not depend on n while u and G do not: more chips are paid for fewer hours. Jobs of equal effective FLOP/s
take equally long, whatever they run on: in T seconds where u G = F D / (T n P).

FLOPs per developer: kept model FLOPs of a month while the job runs, over the developers who share it. Of several jobs
they add up: the sum of n P u G t over the month, over those who are active in it.
"""

import math
from dataclasses import dataclass

HOUR_S, DAY_S = 3600.0, 86_400.0
MONTH_S = 365.25 / 12 * DAY_S


@dataclass(frozen=True, kw_only=True)
class Work:
    """What is to be done: model FLOPs of a token, forward and backward, and tokens. Both above 0."""

    flops_per_token: float
    tokens: float

    @property
    def flops(self) -> float:
        return self.flops_per_token * self.tokens


@dataclass(frozen=True, kw_only=True)
class Held:
    """What does it: chips of a peak in FLOP/s, their utilisation and goodput as shares above 0, dollars a chip-hour
    (None: no price)."""

    chips: int
    peak_flops_per_s: float
    mfu: float
    goodput: float = 1.0
    usd_per_chip_hour: float | None = None

    @property
    def effective_flops_per_s(self) -> float:
        """Model FLOPs a second that are kept, all chips together."""
        return self.chips * self.peak_flops_per_s * self.mfu * self.goodput


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Time and money. `tokens_per_s_per_chip`: while steps run; dollars are None without a price."""

    hours: float
    chip_hours: float
    tokens_per_s_per_chip: float
    effective_flops_per_s: float
    usd: float | None
    usd_per_million_tokens: float | None

    @property
    def days(self) -> float:
        return self.hours * HOUR_S / DAY_S


def cost(work: Work, held: Held) -> Cost:
    """Time and money of the work on what is held."""
    hours = work.flops / held.effective_flops_per_s / HOUR_S
    chip_hours = held.chips * hours
    usd = None if held.usd_per_chip_hour is None else held.usd_per_chip_hour * chip_hours
    return Cost(
        hours=hours,
        chip_hours=chip_hours,
        tokens_per_s_per_chip=held.peak_flops_per_s * held.mfu / work.flops_per_token,
        effective_flops_per_s=held.effective_flops_per_s,
        usd=usd,
        usd_per_million_tokens=None if usd is None else usd / work.tokens * 1e6,
    )


def kept_share_for(work: Work, seconds: float, chips: float, peak_flops_per_s: float) -> float:
    """MFU times goodput with which so many chips take so long; above 1 where they cannot."""
    return work.flops / (seconds * chips * peak_flops_per_s)


def flops_per_developer(effective_flops_per_s: float, developers: int) -> float:
    """Model FLOPs a month that are kept, for each of `developers`."""
    return effective_flops_per_s * MONTH_S / developers


def chips_for(work: Work, seconds: float, flops_per_s_per_chip: float, whole: int = 1) -> int:
    """The fewest chips that finish within `seconds`, each giving so many effective FLOP/s; a multiple of `whole`."""
    least = work.flops / (seconds * flops_per_s_per_chip)
    return max(1, math.ceil(least / whole * (1 - 1e-12))) * whole
