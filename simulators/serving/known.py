"""A throughput that somebody measured of the same model on the same chip, as what the model is held to.

A published figure has no times of single requests to fit shares to. One factor on them makes the simulation of what
was measured come out as measured: shares of the peaks of matrix units and memory times the factor, the engine's own
times by it; that of links stays as it usually is, since one rate cannot tell the two apart. The factor then holds for
other loads and splits of the same model and chip, within a band that is wider the further they are.
"""

from dataclasses import dataclass, replace

import numpy as np

from errors import QuestionError
from simulators.serving.efficiency import TYPICAL, Efficiency
from simulators.serving.engine import simulate
from simulators.serving.setup import Setup
from simulators.serving.traffic import Traffic, closed

SAME, OTHER = 0.3, 0.5  # of the rate: how far off what was measured may be, and another split or load of it
LEAST, MOST = 0.01, 1.9  # of the factor: TYPICAL times it stays a share
CLOSE = 0.005
TRIALS = 40


@dataclass(frozen=True)
class Anchor:
    """`factor`: on TYPICAL, by which `setup` gives the `requests_per_s` that were measured. `name`: of what."""

    setup: Setup
    factor: float
    requests_per_s: float
    name: str

    @property
    def efficiency(self) -> Efficiency:
        return scaled(self.factor, f"typical shares times {self.factor:.3g}, so that {self.name} comes out as measured")

    def for_setup(self, setup: Setup) -> tuple[Efficiency, list[str]]:
        """The shares for another setup on the same chip."""
        return self.efficiency, []

    def off(self, setup: Setup, same_load: bool) -> float:
        """By which share the rate of `setup` may be off, each way."""
        alike = setup.replica_chips == self.setup.replica_chips and setup.tensor == self.setup.tensor
        return SAME if alike and same_load and setup.kept.name == self.setup.kept.name else OTHER


def scaled(factor: float, basis: str) -> Efficiency:
    """TYPICAL, `factor` times as fast, no share above 1."""
    e = TYPICAL
    return replace(
        e,
        bandwidth=min(e.bandwidth * factor, 1.0),
        compute=min(e.compute * factor, 1.0),
        step_s=e.step_s / factor,
        sequence_s=e.sequence_s / factor,
        basis=basis,
    )


def traffic_of(requests: int, in_flight: int, prompt: int, output: int, cached: int) -> Traffic:
    """`requests` of these lengths, `in_flight` at a time; all at once where those are as many."""
    if in_flight < requests:
        return closed(in_flight, requests, prompt, output, cached)
    prompts, outputs, found = (np.full(requests, n, dtype=np.int64) for n in (prompt, output, cached))
    return Traffic(np.zeros(requests), prompts, outputs, found, "all at once")


def anchored(setup: Setup, traffic: Traffic, requests_per_s: float, name: str) -> Anchor:
    """The factor by which `setup` serves `traffic` at the rate measured. Raises QuestionError where none does."""
    low, high = LEAST, MOST
    for _ in range(TRIALS):
        middle = (low * high) ** 0.5
        outcome = simulate(setup, traffic, scaled(middle, ""), record=False)
        rate = len(outcome.served) / outcome.duration_s
        if abs(rate / requests_per_s - 1) < CLOSE:
            return Anchor(setup, middle, requests_per_s, name)
        low, high = (middle, high) if rate < requests_per_s else (low, middle)
    raise QuestionError(
        f"no shares of the peaks give {requests_per_s:.4g} requests a second, which {name} measured",
        expected="a measurement of this model on this chip",
    )
