"""Which setup serves a given traffic cheapest within its objectives, and why each of the others does not.

Every chip, every power of two of chips that share a model, and every format is reckoned (`estimate.py`). The best of
each chip, and then whatever ranks first, is simulated (`engine.py`) at rising load until the objectives break, so that
the one that wins was always simulated. Replicas are added until they bear the traffic. Costs need prices; without any
the setup with the fewest chips comes first.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from catalog.chips import Chip
from catalog.models import Model
from errors import QuestionError
from simulators.serving.calibrate import Calibration
from simulators.serving.cost import usd_per_million_tokens
from simulators.serving.efficiency import FAST, SLOW, TYPICAL, Efficiency
from simulators.serving.engine import simulate
from simulators.serving.estimate import Estimate, estimate
from simulators.serving.objectives import Capacity, Objectives, Shape, capacity
from simulators.serving.setup import Setup

MOST_CHIPS = 64  # that share a model
SIMULATED = 12  # at most; each takes about a second
FORMATS = {"bf16": "bf16_flops_per_s", "fp8": "fp8_flops_per_s", "int8": "int8_ops_per_s"}
LIMITS = {
    "ttft_s": "the time to first token breaks", "tpot_s": "the time per output token breaks",
    "e2e_s": "the time to the last token breaks", "rate": "it falls behind", "cache": "the cache is full",
    "seats": "all seats are taken", "": "more was not tried",
}  # fmt: skip
Progress = Callable[[float, str], None]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Requests of `shape` at `rate_per_s`, to be answered within `objectives` by `model`."""

    model: Model
    shape: Shape
    rate_per_s: float
    objectives: Objectives

    def __post_init__(self) -> None:
        if not 0 < self.rate_per_s < float("inf"):
            raise QuestionError(f"{self.rate_per_s:g} requests a second", expected="a number above 0")


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
        return f"{shared}{self.setup.replica_chips} {self.setup.chip.name}, {self.setup.weights_precision}{experts}"


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
    wanted: Wanted, chips: Sequence[Chip], prices: Mapping[str, float], calibrated: Mapping[str, Calibration],
    formats: Sequence[str] = (), progress: Progress = lambda share, what: None, **limits: int,
) -> Plan:  # fmt: skip
    """The plan. `prices`: dollars per chip-hour by chip name; `calibrated`: by chip name, typical efficiencies and a
    range where there is none; `formats`: of weights and of what multiplies them; none: bf16 and the chip's faster 8-bit
    format. `limits`: further fields of Setup, such as max_sequences."""
    if unknown := [f for f in formats if f not in FORMATS]:
        raise QuestionError(f"format {unknown[0]!r}", expected=f"one of {', '.join(FORMATS)}")
    reckoned, notes = [], []
    for chip in chips:
        for setup in setups(wanted.model, chip, formats, limits, notes):
            shares, told = calibrated[chip.name].for_setup(setup) if chip.name in calibrated else (TYPICAL, [])
            notes += told
            reckoned.append((setup, shares, estimate(setup, wanted.shape, wanted.objectives, shares)))
    if not reckoned:
        raise QuestionError("no setup could be tried", expected="a chip with a known peak in one of these formats")
    choices = [_reckoned(wanted, s, e, prices) for s, _, e in reckoned]
    for done in range(SIMULATED):
        i = _next(choices, prices)
        if i is None:
            break
        setup, shares, guess = reckoned[i]
        progress(done / SIMULATED, choices[i].name)
        choices[i] = _simulated(wanted, setup, shares, guess, prices, setup.chip.name in calibrated)
    progress(1.0, "done")
    choices.sort(key=lambda c: _rank(c, prices))
    return Plan(wanted, tuple(_with_reasons(choices, prices)), tuple(dict.fromkeys(notes)))


def _next(choices: Sequence[Choice], prices: Mapping[str, float]) -> int | None:
    """The setup to simulate next: the best of a chip of which none was, else the first in rank; None: all is told."""
    order = sorted((i for i, c in enumerate(choices) if c.feasible), key=lambda i: _rank(choices[i], prices))
    seen = {c.setup.chip.name for c in choices if c.basis == "simulated"}
    fresh = next((i for i in order if choices[i].setup.chip.name not in seen), None)
    if fresh is not None:
        return fresh
    return order[0] if order and choices[order[0]].basis != "simulated" else None


def best_formats(chip: Chip) -> tuple[str, ...]:
    """bf16, and the 8-bit format in which the chip multiplies faster, if it has one."""
    peak = chip.value("bf16_flops_per_s") or 0
    faster = next((f for f in ("fp8", "int8") if (chip.value(FORMATS[f]) or 0) > peak), None)
    return ("bf16", faster) if faster else ("bf16",)


def setups(
    model: Model, chip: Chip, formats: Sequence[str], limits: Mapping[str, int], notes: list[str]
) -> list[Setup]:  # fmt: skip
    """One replica in every way worth trying: powers of two of chips; with routed experts also spread over the chips,
    attention then data-parallel. A format is tried where the chip multiplies in it."""
    heads = min(a.heads for a in model.attention)
    domain = int(chip.value("scaleup_domain_chips") or 1)
    most = min(MOST_CHIPS, max(domain, int(chip.value("chips_per_host") or 1)))
    found = []
    for precision in formats or best_formats(chip):
        if precision != "bf16" and not chip.value(FORMATS[precision]):
            continue
        if precision == "fp8" and chip.value(FORMATS["fp8"]) == chip.value(FORMATS["bf16"]):
            notes.append(f"{chip.name} multiplies fp8 no faster than bf16: it saves memory and its bandwidth only.")
        for n in (2**k for k in range(int(math.log2(most)) + 1)):
            ways = [{"tensor": n}] if heads % n == 0 else []
            if n > 1 and any(f.experts for f in model.feedforward):
                ways.append({"tensor": 1, "expert": n})
            for way in ways:
                try:
                    setup = Setup(model=model, chip=chip, chips=n, weights_precision=precision, **way, **limits)
                    setup.machine  # noqa: B018 - a number that the catalogue lacks is found here
                except QuestionError as e:
                    notes.append(f"{chip.name}, {precision}: {e}")
                    continue
                found.append(setup)
    return found


def _reckoned(wanted: Wanted, setup: Setup, found: Estimate, prices: Mapping[str, float]) -> Choice:
    seen = {"ttft_s": found.ttft_s, "tpot_s": found.tpot_s}
    return _choice(wanted, setup, found.rate_per_s, seen, found.limit, "reckoned", prices, found.why)


def _simulated(
    wanted: Wanted, setup: Setup, shares: Efficiency, guess: Estimate, prices: Mapping[str, float], chip_given: bool
) -> Choice:  # fmt: skip
    def bears(with_shares: Efficiency, near: float) -> Capacity:
        return capacity(lambda t: simulate(setup, t, with_shares, record=False).requests, wanted.shape,
                        wanted.objectives, near)  # fmt: skip

    found = bears(shares, guess.rate_per_s)
    why = "" if found.rate_per_s else f"simulated, even one request alone: {LIMITS[found.limit]}"
    choice = _choice(wanted, setup, found.rate_per_s, found.seen, found.limit, "simulated", prices, why)
    if chip_given or not found.rate_per_s:
        return choice
    ends = [estimate(setup, wanted.shape, wanted.objectives, e).rate_per_s for e in (FAST, SLOW)]
    scale = found.rate_per_s / guess.rate_per_s  # queueing, as the simulation found it
    low, high = (_replicas(wanted, rate * scale) * setup.replica_chips if rate else None for rate in ends)
    return replace(choice, chips_low=low, chips_high=high)


def _replicas(wanted: Wanted, rate: float) -> int:
    return math.ceil(wanted.rate_per_s / rate * (1 - 1e-9)) if rate else 0


def _choice(
    wanted: Wanted, setup: Setup, rate: float, seen: Mapping[str, float], limit: str, basis: str,
    prices: Mapping[str, float], why: str,
) -> Choice:  # fmt: skip
    replicas = _replicas(wanted, rate)
    price = prices.get(setup.chip.name)
    chips = replicas * setup.replica_chips
    priced = price is not None and replicas
    tokens = wanted.rate_per_s * wanted.shape.output
    return Choice(
        setup=setup, replicas=replicas, rate_per_replica=rate, seen=seen, limit=limit, basis=basis, why=why,
        usd_per_hour=chips * price if priced else None,
        usd_per_million=usd_per_million_tokens(tokens, chips, price) if priced else None,
    )  # fmt: skip


def _rank(choice: Choice, prices: Mapping[str, float]) -> tuple:
    """Feasible first; then by cost, where every chip in question has a price, else by chips; then the fewest chips."""
    cost = choice.usd_per_hour if prices and choice.usd_per_hour is not None else math.inf
    return (not choice.feasible, cost, choice.chips, choice.setup.replica_chips)


def _with_reasons(ranked: Sequence[Choice], prices: Mapping[str, float]) -> list[Choice]:
    best = next((c for c in ranked if c.feasible), None)
    result = []
    for choice in ranked:
        if not choice.feasible:
            result.append(choice)
            continue
        bears = f"a replica bears {choice.rate_per_replica:.3g} requests a second, then {LIMITS[choice.limit]}"
        if choice is best:
            lead = "the cheapest" if choice.usd_per_hour is not None else "the fewest chips"
        elif choice.usd_per_hour is not None and best.usd_per_hour:
            times = choice.usd_per_hour / best.usd_per_hour
            lead = f"costs {times:.2f} times as much" if times > 1.005 else "costs the same"
        elif choice.usd_per_hour is None and best.usd_per_hour is not None:
            lead = f"no price for {choice.setup.chip.name}"
        else:
            more = choice.chips > best.chips
            lead = f"takes {choice.chips:,} chips, not {best.chips:,}" if more else "takes as many chips"
        result.append(replace(choice, why=f"{lead}: {bears}"))
    return result
