"""What a serving plan knows beyond assumptions: measured cases and runs of the same model and chip, bands, break-evens.

A run of the store with times of single requests is fitted (`calibrate.py`); where there is none, a published case is
what the shares are held to (`known.py`). Bands are of what one replica gives: from the slowest to the fastest shares
assumed; around a case, 30 % each way for what was measured and 50 % for another split or load, and never so narrow that
the measurement lies outside.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from catalog import chip as find_chip
from catalog import model as find_model
from catalog.chips import Chip
from catalog.serving_figures import ServingCase, cases
from errors import QuestionError
from simulators.serving.calibrate import Calibration
from simulators.serving.cost import break_even
from simulators.serving.efficiency import FAST, SLOW, TYPICAL
from simulators.serving.estimate import estimate
from simulators.serving.known import OTHER, Anchor, anchored, traffic_of
from simulators.serving.planner import Choice, Plan, Wanted, chips_for
from simulators.serving.setup import Setup

Known = Calibration | Anchor


@dataclass(frozen=True)
class Band:
    """Requests and generated tokens a second of one replica at the most it bears: between which they lie, and why so.
    `measured`: what a case of this very setup and load gave, None where there is none."""

    requests_per_s: tuple[float, float]
    output_tokens_per_s: tuple[float, float]
    basis: str
    measured: ServingCase | None = None

    def to_dict(self) -> dict[str, Any]:
        m = self.measured
        return {
            "requests_per_s": list(self.requests_per_s),
            "output_tokens_per_s": list(self.output_tokens_per_s),
            "basis": self.basis,
            "measured": m
            and {
                "requests_per_s": m.request_rate_per_s,
                "output_tokens_per_s": m.output_tokens_per_s,
                "chips": m.chips,
                "source": m.source,
                "note": m.note,
            },
        }


@dataclass(frozen=True)
class BreakEven:
    """The price of a chip-hour of `chip` below which it serves the rate asked for cheaper than the best, `against`.

    `times`: by the price of a chip of `against`, the ratio of the chips that each takes, in whole replicas; `low`,
    `high`: by the bands, 0 where at its slow end `chip` bears nothing, None where at its slow end `against` does not.
    `full_load_times`: where every chip is used to the full, the ratio of what a chip of each bears; `measured`: by
    measurements of both alone. `usd`: with the price of `against`, None where that is not known.
    """

    chip: str
    against: str
    times: float
    low: float
    high: float | None
    full_load_times: float
    measured: bool
    against_usd: float | None
    own_usd: float | None

    @property
    def usd(self) -> float | None:
        return None if self.against_usd is None else self.times * self.against_usd

    def to_dict(self) -> dict[str, Any]:
        scale = self.against_usd
        return {
            "chip": self.chip,
            "against": self.against,
            "times": self.times,
            "usd_per_chip_hour": self.usd,
            "basis": "modelled",
            "times_low": self.low,
            "times_high": self.high,
            "usd_per_chip_hour_low": scale and self.low * scale,
            "usd_per_chip_hour_high": scale and self.high and self.high * scale,
            "against_usd_per_chip_hour": scale,
            "own_usd_per_chip_hour": self.own_usd,
            "full_load_times": self.full_load_times,
            "full_load_basis": "measured" if self.measured else "modelled",
        }


def known_case(wanted: Wanted, chip: Chip) -> ServingCase | None:
    """The measured case of this model and chip; one configured for the same requests before others."""
    shape = wanted.shape
    found = [c for c in cases() if find_model(c.model) == wanted.model and find_chip(c.chip).name == chip.name]
    return min(found, key=lambda c: not c.of_shape(shape.prompt, shape.output, shape.cached), default=None)


def anchors(wanted: Wanted, chips: Iterable[Chip]) -> tuple[dict[str, Anchor], list[str]]:
    """What published cases say of these chips, by name; and a sentence for each."""
    found, notes = {}, []
    for chip in chips:
        case = known_case(wanted, chip)
        if case is None:
            continue
        own = case.of_shape(wanted.shape.prompt, wanted.shape.output, wanted.shape.cached)
        setup = Setup(model=wanted.model, chip=chip, chips=case.chips, weights_precision=case.precision)
        load = traffic_of(
            case.requests, case.in_flight, case.input, case.output if own else case.answer_tokens, case.prefix
        )
        name = f"{case.chips} × {chip.name}, {case.request_rate_per_s:.3g} requests/s"
        try:
            made = anchored(setup, load, case.request_rate_per_s, name)
        except QuestionError as e:
            notes.append(f"A measurement of {wanted.model.name} on {chip.name} is known but not used: {e}")
            continue
        found[chip.name] = made
        notes.append(
            f"{wanted.model.name} on {case.chips} × {chip.name} was measured: {case.request_rate_per_s:.3g} requests a "
            f"second, {case.output_tokens_per_s:,.2f} output tokens/s; prompts of {case.input:,} tokens, "
            f"{case.prefix:,} in the cache, answers of {case.output:,} ({case.source}; {case.note}). The plan is held "
            f"to it: {made.factor:.2f} times the shares of the peaks that are usual."
        )
    return found, notes


def bands(made: Plan, known: Mapping[str, Known]) -> dict[int, Band]:
    """The band of each feasible choice, by its place in the plan."""
    return {i: band(made.wanted, c, known.get(c.setup.chip.name)) for i, c in enumerate(made.choices) if c.feasible}


def band(wanted: Wanted, c: Choice, known: Known | None) -> Band:
    shape, rate = wanted.shape, c.rate_per_replica
    if known is None:
        ends = [estimate(c.setup, shape, wanted.objectives, e).rate_per_s for e in (SLOW, TYPICAL, FAST)]
        low, high = (rate * end / ends[1] if ends[1] else rate for end in (ends[0], ends[2]))
        return _band(min(low, rate), max(high, rate), shape.output, "assumed shares of the peaks, slowest to fastest")
    if isinstance(known, Calibration):
        same = known.setup.model.name == wanted.model.name and known.setup.replica_chips == c.setup.replica_chips
        off = min(max([abs(x) for e in known.intervals.values() for x in e] + ([] if same else [OTHER])), 0.9)
        return _band(rate * (1 - off), rate * (1 + off), shape.output, f"calibrated on {known.name}")
    case = known_case(wanted, c.setup.chip)
    same_load = case is not None and case.of_shape(shape.prompt, shape.output, shape.cached)
    off = known.off(c.setup, same_load)
    found = _band(rate * (1 - off), rate * (1 + off), shape.output, f"held to {known.name}, measured")
    if not same_load or (c.setup.replica_chips, c.setup.tensor) != (case.chips, case.chips):
        return found
    (low, high), (least, most) = found.requests_per_s, found.output_tokens_per_s
    told, tokens = case.request_rate_per_s, case.output_tokens_per_s  # answers were longer than configured
    return replace(
        found,
        requests_per_s=(min(low, told), max(high, told)),
        measured=case,
        output_tokens_per_s=(min(least, tokens), max(most, tokens * (1 + off))),
    )


def _band(low: float, high: float, output: int, basis: str) -> Band:
    return Band((low, high), (low * output, high * output), basis)


def break_evens(made: Plan, found: Mapping[int, Band], prices: Mapping[str, float]) -> tuple[BreakEven, ...]:
    """The best setup of each other chip against the best of all, by the chips that the rate takes of each."""
    first = {}
    for i, c in enumerate(made.choices):
        if c.feasible:
            first.setdefault(c.setup.chip.name, i)
    if made.best is None or not first:
        return ()
    best, *others = first.values()
    return tuple(_against(made, found, prices, best, other) for other in others)


def _against(made: Plan, found: Mapping[int, Band], prices: Mapping[str, float], best: int, other: int) -> BreakEven:
    a, b = made.choices[best], made.choices[other]
    (a_low, a_high), (b_low, b_high) = found[best].requests_per_s, found[other].requests_per_s

    def times(of_a: float, of_b: float) -> float:
        return chips_for(made.wanted, a.setup, of_a) / chips_for(made.wanted, b.setup, of_b)

    full_load, measured = _full_load(made.wanted, a, b)
    return BreakEven(
        chip=b.setup.chip.name,
        against=a.setup.chip.name,
        times=a.chips / b.chips,
        low=times(a_high, b_low) if b_low else 0.0,
        high=times(a_low, b_high) if a_low else None,
        full_load_times=full_load,
        measured=measured,
        against_usd=prices.get(a.setup.chip.name),
        own_usd=prices.get(b.setup.chip.name),
    )


def _full_load(wanted: Wanted, a: Choice, b: Choice) -> tuple[float, bool]:
    """What a chip of `b` bears, by what one of `a` does; and whether both were measured at these requests."""
    cases, shape = [known_case(wanted, c.setup.chip) for c in (a, b)], wanted.shape
    alike = [c for c in cases if c is not None and c.of_shape(shape.prompt, shape.output, shape.cached)]
    if len(alike) == 2:
        return break_even(*((c.output_tokens_per_s, c.chips) for c in alike)), True
    return break_even(*((c.rate_per_replica, c.setup.replica_chips) for c in (a, b))), False


def stored(runs: Iterable[Any], wanted: Wanted, chips: Iterable[Chip]) -> dict[str, Any]:
    """The newest run of the store for each chip that served this model there and has times of single requests."""
    wanted_chips = {c.name for c in chips}
    found: dict[str, Any] = {}
    for run in runs:
        m = run.manifest
        if m.kind != "serving" or not m.tables.get("requests") or m.fact("simulated"):
            continue
        try:
            name, served = find_chip(m.fact("chip")).name, find_model(m.fact("model"))
        except (QuestionError, TypeError):
            continue
        if name in wanted_chips and served == wanted.model:
            found.setdefault(name, run)
    return found
