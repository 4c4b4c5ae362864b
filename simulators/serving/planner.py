"""Which setup serves a given traffic cheapest within its objectives, and why each of the others does not.

Every chip, every power of two of chips that share a model, and every format is reckoned (`estimate.py`). Each setup is
then ranked by the most that it might bear: as reckoned at best, then as short trials leave room for, at last as long
trials settle it (`objectives.py`, `engine.py`). Whatever ranks first so is looked at more closely, until the first is
settled: nothing else can be cheaper then. So is the best of each other chip, of which the price is told at which it
tips. Replicas are added until they bear the traffic. Costs need prices; without any chips are counted kind by kind, and
kinds are not compared.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypedDict, Unpack

from catalog.chips import Chip
from catalog.formats import NAMES, WIDE, own_format
from catalog.models import Model
from errors import QuestionError
from errors import format as fmt
from errors.numbers import RATE
from simulators.serving.calibrate import Calibration
from simulators.serving.cost import usd_per_million_tokens
from simulators.serving.efficiency import FAST, SLOW, TYPICAL, Efficiency
from simulators.serving.engine import simulate
from simulators.serving.estimate import Estimate, estimate
from simulators.serving.machine import known_peak
from simulators.serving.objectives import Capacity, Objectives, Serve, Shape, looked_for, settled
from simulators.serving.setup import Setup

MOST_CHIPS = 64  # that share a model
BEYOND_RECKONED = 1.1  # by so much a simulation may bear more than the most that was reckoned
BEYOND_SHORT = 1.05  # and long trials more than the lowest rate that short ones missed
LIMITS = {
    "ttft_s": "the time to first token breaks",
    "tpot_s": "the time per output token breaks",
    "e2e_s": "the time to the last token breaks",
    "rate": "it falls behind",
    "cache": "the cache is full",
    "seats": "all seats are taken",
    "": "more was not tried",
}
Progress = Callable[[float, str], None]


class EngineLimits(TypedDict, total=False):
    """Limits of the engine that are given: fields of Setup."""

    max_sequences: int
    token_budget: int


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Requests of `shape` at `rate_per_s`, to be answered within `objectives` by `model`."""

    model: Model
    shape: Shape
    rate_per_s: float
    objectives: Objectives

    def __post_init__(self) -> None:
        RATE.read(self.rate_per_s, "", shown=f"{self.rate_per_s:g} requests a second")


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One setup for the whole traffic. `setup` is one replica; `basis`: simulated or reckoned. `chips_low`,
    `chips_high`: with the fastest and slowest efficiencies assumed (None where not reckoned or nothing would do).
    `why`: in words, why it is the one or why not.
    """

    setup: Setup
    replicas: int
    rate_per_replica: float
    seen: Mapping[str, float]
    limit: str
    basis: str
    usd_per_hour: float | None
    usd_per_million: float | None
    chips_low: int | None = None
    chips_high: int | None = None
    why: str = ""

    @property
    def chips(self) -> int:
        return self.replicas * self.setup.replica_chips

    @property
    def feasible(self) -> bool:
        return self.replicas > 0

    @property
    def name(self) -> str:
        """`3 × 4 TPU v6e, int8`."""
        shared = f"{self.replicas} × " if self.replicas != 1 and self.feasible else ""
        experts = ", experts spread" if self.setup.expert > 1 else ""
        return f"{shared}{self.setup.replica_chips} {self.setup.chip.name}, {self.setup.kept.name}{experts}"


@dataclass(frozen=True)
class Plan:
    """`choices`: the best first, then the other feasible ones, then those that cannot do it."""

    wanted: Wanted
    choices: tuple[Choice, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def best(self) -> Choice | None:
        return self.choices[0] if self.choices and self.choices[0].feasible else None


def plan(
    wanted: Wanted,
    chips: Sequence[Chip],
    prices: Mapping[str, float],
    calibrated: Mapping[str, Calibration],
    formats: Sequence[str] = (),
    progress: Progress = lambda share, what: None,
    **limits: Unpack[EngineLimits],
) -> Plan:
    """The plan. `prices`: dollars per chip-hour by chip name; `calibrated`: by chip name, typical efficiencies and a
    range where there is none; `formats`: of weights and of what multiplies them, see `formats_of`. `limits`: of
    the engine, as Setup names them."""
    if unknown := [f for f in formats if f not in NAMES]:
        raise QuestionError(f"format {unknown[0]!r}", expected=f"one of {', '.join(NAMES)}")
    candidates, notes = [], []
    for chip in chips:
        for setup in setups(wanted.model, chip, formats, limits, notes):
            shares, told = calibrated[chip.name].for_setup(setup) if chip.name in calibrated else (TYPICAL, [])
            notes += told
            guess = estimate(setup, wanted.shape, wanted.objectives, shares)
            choice = _reckoned(wanted, setup, guess, prices)
            most = BEYOND_RECKONED * guess.most_per_s
            candidates.append(_Candidate(setup, shares, guess, chip.name in calibrated, choice, most))
    if not candidates:
        raise QuestionError("no setup could be tried", expected="a chip with a known peak in one of these formats")
    done = 0
    while (chosen := _next(wanted, candidates, prices)) is not None:
        progress(done / (done + _open(wanted, candidates, prices)), chosen.choice.name)
        _look_closer(wanted, chosen, prices)
        done += 1
    progress(1.0, "done")
    choices = sorted((c.choice for c in candidates), key=lambda c: _rank(c, prices))
    return Plan(wanted, tuple(_with_reasons(choices, prices)), tuple(dict.fromkeys(notes)))


@dataclass
class _Candidate:
    """A setup and what is known of it so far. `most_per_s`: that a replica might bear; `found`: by trials."""

    setup: Setup
    shares: Efficiency
    guess: Estimate
    chip_given: bool
    choice: Choice
    most_per_s: float
    found: Capacity | None = None

    @property
    def settled(self) -> bool:
        return self.found is not None and self.found.settled


def _at_best(wanted: Wanted, candidate: _Candidate, prices: Mapping[str, float]) -> tuple:
    """The rank that the setup would have, did it bear the most that it might."""
    if candidate.settled:
        return _rank(candidate.choice, prices)
    c = candidate.choice
    return _rank(_choice(wanted, c.setup, candidate.most_per_s, {}, "", "", prices, ""), prices)


def _next(wanted: Wanted, candidates: Sequence[_Candidate], prices: Mapping[str, float]) -> _Candidate | None:
    """The setup to look at more closely: the first in rank of a chip whose first is not settled; None: all is told."""
    able = sorted((c for c in candidates if c.choice.feasible), key=lambda c: _at_best(wanted, c, prices))
    first: dict[str, _Candidate] = {}
    for c in able:
        first.setdefault(c.setup.chip.name, c)
    unsettled = [c for c in first.values() if not c.settled]
    return min(unsettled, key=lambda c: c.found is not None, default=None)  # one of each chip tells how many remain


def _open(wanted: Wanted, candidates: Sequence[_Candidate], prices: Mapping[str, float]) -> int:
    """How many setups might still come first; at least 1."""
    able = [c for c in candidates if c.choice.feasible]
    best = min((_rank(c.choice, prices) for c in able if c.found), default=None)
    return max(1, sum(not c.settled and (best is None or _at_best(wanted, c, prices) <= best) for c in able))


def best_formats(chip: Chip) -> tuple[str, ...]:
    """bf16, and the 8-bit format in which the chip multiplies faster, if it has one."""
    peak = known_peak(chip, WIDE) or 0
    faster = next((f for f in ("fp8", "int8") if (known_peak(chip, f) or 0) > peak), None)
    return ("bf16", faster) if faster else ("bf16",)


def formats_of(model: Model, chip: Chip, asked: Sequence[str]) -> tuple[str, ...]:
    """The formats to try, by the catalogue's names: as asked, else as the model is published, else `best_formats`.

    Plain fp4 and int4 of a model that is not published so stand for what engines read: NVFP4, and AWQ.
    """
    if not asked:
        return best_formats(chip) if model.published.format == WIDE else (model.published.format,)
    usual = {"fp4": "nvfp4", "int4": "awq"}
    named = (own_format(model, f) for f in asked)
    return tuple(dict.fromkeys(usual.get(f, f) for f in named))


def setups(model: Model, chip: Chip, formats: Sequence[str], limits: EngineLimits, notes: list[str]) -> list[Setup]:
    """One replica in every way worth trying: powers of two of chips; with routed experts also spread over the chips,
    attention then data-parallel. A plain 8-bit format is tried where the chip multiplies in it; others can be stored
    on any."""
    heads = min(a.heads for a in model.attention)
    domain = int(chip.value("scaleup_domain_chips") or 1)
    most = min(MOST_CHIPS, max(domain, int(chip.value("chips_per_host") or 1)))
    found = []
    for precision in formats_of(model, chip, formats):
        if precision in ("fp8", "int8") and not known_peak(chip, precision):
            continue
        if precision == "fp8" and known_peak(chip, "fp8") == known_peak(chip, WIDE):
            notes.append(f"{chip.name} multiplies fp8 no faster than bf16: it saves memory and its bandwidth only.")
        for n in (2**k for k in range(int(math.log2(most)) + 1)):
            ways = [(n, 1)] if heads % n == 0 else []
            if n > 1 and any(f.experts for f in model.feedforward):
                ways.append((1, n))
            for tensor, expert in ways:
                try:
                    setup = Setup(
                        model=model,
                        chip=chip,
                        chips=n,
                        tensor=tensor,
                        expert=expert,
                        weights_precision=precision,
                        **limits,
                    )
                    notes += setup.machine.stand_ins  # raises where the catalogue lacks a number
                except QuestionError as e:
                    notes.append(f"{chip.name}, {precision}: {e}")
                    continue
                found.append(setup)
    return found


def _reckoned(wanted: Wanted, setup: Setup, found: Estimate, prices: Mapping[str, float]) -> Choice:
    seen = {"ttft_s": found.ttft_s, "tpot_s": found.tpot_s}
    return _choice(wanted, setup, found.rate_per_s, seen, found.limit, "reckoned", prices, found.why)


def _look_closer(wanted: Wanted, candidate: _Candidate, prices: Mapping[str, float]) -> None:
    """Short trials, or long ones where there were short ones. Rates that would do with a replica less are tried."""
    setup, shares, guess = candidate.setup, candidate.shares, candidate.guess
    serve: Serve = lambda t: simulate(setup, t, shares, record=False).requests  # noqa: E731
    if candidate.found is None:
        found = looked_for(serve, wanted.shape, wanted.objectives, guess.rate_per_s)
        candidate.most_per_s = BEYOND_SHORT * found.below_per_s
        if not found.rate_per_s:
            found = replace(found, settled=True)
    else:
        replicas = _replicas(wanted, candidate.found.rate_per_s)
        asked = tuple(wanted.rate_per_s / n for n in range(max(1, replicas - 2), replicas + 3))
        found = settled(serve, wanted.shape, wanted.objectives, candidate.found, asked)
    candidate.found, candidate.choice = found, _simulated(wanted, candidate, found, prices)


def _simulated(wanted: Wanted, candidate: _Candidate, found: Capacity, prices: Mapping[str, float]) -> Choice:
    setup, guess = candidate.setup, candidate.guess
    alone = "even one request alone" if found.below_per_s == 0 else "at any load"
    why = "" if found.rate_per_s else f"simulated, {alone}: {LIMITS[found.limit]}"
    choice = _choice(wanted, setup, found.rate_per_s, found.seen, found.limit, "simulated", prices, why)
    if candidate.chip_given or not found.rate_per_s:
        return choice
    ends = [estimate(setup, wanted.shape, wanted.objectives, e).rate_per_s for e in (FAST, SLOW)]
    scale = found.rate_per_s / guess.rate_per_s  # queueing, as the simulation found it
    low, high = (chips_for(wanted, setup, rate * scale) if rate else None for rate in ends)
    return replace(choice, chips_low=low, chips_high=high)


def _replicas(wanted: Wanted, rate: float) -> int:
    return math.ceil(wanted.rate_per_s / rate * (1 - 1e-9)) if rate else 0


def chips_for(wanted: Wanted, setup: Setup, rate: float) -> int:
    """How many bear the traffic where a replica bears `rate` requests a second; 0 where it bears none."""
    return _replicas(wanted, rate) * setup.replica_chips


def _choice(
    wanted: Wanted,
    setup: Setup,
    rate: float,
    seen: Mapping[str, float],
    limit: str,
    basis: str,
    prices: Mapping[str, float],
    why: str,
) -> Choice:
    replicas = _replicas(wanted, rate)
    price = prices.get(setup.chip.name)
    chips = replicas * setup.replica_chips
    paid = price if replicas else None
    tokens = wanted.rate_per_s * wanted.shape.output
    return Choice(
        setup=setup,
        replicas=replicas,
        rate_per_replica=rate,
        seen=seen,
        limit=limit,
        basis=basis,
        why=why,
        usd_per_hour=None if paid is None else chips * paid,
        usd_per_million=None if paid is None else usd_per_million_tokens(tokens, chips, paid),
    )


def _rank(choice: Choice, prices: Mapping[str, float]) -> tuple:
    """Feasible first; then by cost; those without a price kind by kind of chip, since chips of unlike price are not
    compared by count; of one kind the fewest chips."""
    cost = choice.usd_per_hour if prices and choice.usd_per_hour is not None else math.inf
    kind = choice.setup.chip.name if choice.feasible and cost == math.inf else ""
    return (not choice.feasible, cost, kind, choice.chips, choice.setup.replica_chips)


def _with_reasons(ranked: Sequence[Choice], prices: Mapping[str, float]) -> list[Choice]:
    best = next((c for c in ranked if c.feasible), None)
    result = []
    for choice in ranked:
        if best is None or not choice.feasible:
            result.append(choice)
            continue
        bears = f"a replica bears {fmt.at_most(choice.rate_per_replica)} requests a second, then {LIMITS[choice.limit]}"
        if choice is best:
            lead = "the cheapest" if choice.usd_per_hour is not None else f"the fewest {choice.setup.chip.name}"
        elif choice.usd_per_hour is not None and best.usd_per_hour:
            times = choice.usd_per_hour / best.usd_per_hour
            lead = f"costs {times:.2f} times as much" if times > 1.005 else "costs the same"
        elif choice.usd_per_hour is None and best.usd_per_hour is not None:
            lead = f"no price for {choice.setup.chip.name}"
        elif choice.setup.chip.name != best.setup.chip.name:
            lead = f"{choice.chips:,} chips of another kind, which no price compares"
        else:
            more = choice.chips > best.chips
            lead = f"takes {choice.chips:,} chips, not {best.chips:,}" if more else "takes as many chips"
        result.append(replace(choice, why=f"{lead}: {bears}"))
    return result
