"""Joules between samples: by a counter of energy where there is one, else by watts; and what held between them.

    counter   what it grew by. Where it begins anew, as a driver that is loaded again has it, watts tell; else nothing
    watts     the mean of two samples, for the time between them
Between samples further apart than GAP times what is usual nothing is known of watts and states.
"""

from typing import NamedTuple

import numpy as np

from analyzers.device.power.samples import COUNTER, ENERGY, FLAG, Sampled, Series
from analyzers.intervals import Spans

GAP = 5.0
NS = 1e9


class Stretches(NamedTuple):
    """Half-open intervals of time, apart and in order, each with an amount that is spread evenly over it."""

    start: np.ndarray
    end: np.ndarray
    amount: np.ndarray

    @property
    def seconds(self) -> np.ndarray:
        return (self.end - self.start) / NS


def joules(chip: Sampled) -> tuple[Stretches, str]:
    """(joules between samples, `counter` or `samples`)."""
    power, counter = chip.power, chip.of(ENERGY)
    by_watts = _by_watts(power)
    if len(counter.at) < 2:
        return by_watts, "samples"
    start, end, grew = counter.at[:-1], counter.at[1:], np.diff(counter.value)
    if not grew.any() and by_watts.amount.any():
        return by_watts, "samples"  # a counter that stands
    anew = grew < 0
    if anew.any():
        amount, seconds = within(by_watts, Spans(start[anew], end[anew]))
        length = (end[anew] - start[anew]) / NS
        known = seconds >= 0.5 * length
        grew[anew] = np.where(known, amount / np.maximum(seconds, 1e-9) * length, np.nan)
    told = np.isfinite(grew)
    return Stretches(start[told], end[told], grew[told]), "counter"


def _by_watts(power: Series) -> Stretches:
    start, end = power.at[:-1], power.at[1:]
    near = _near(power)
    amount = (power.value[:-1] + power.value[1:]) / 2 * (end - start) / NS
    return Stretches(start[near], end[near], amount[near])


def _near(series: Series) -> np.ndarray:
    """Which samples are followed by the next about when one usually is."""
    apart = np.diff(series.at)
    return apart <= GAP * np.median(apart) if len(apart) else np.zeros(0, bool)


def within(told: Stretches, windows: Spans) -> tuple[np.ndarray, np.ndarray]:
    """(amount, seconds of it that are known) in each of the windows, which are apart and in order."""
    if not len(told.start) or not len(windows.start):
        return np.zeros(len(windows.start)), np.zeros(len(windows.start))
    edges = np.ravel(np.column_stack((told.start, told.end)))
    amounts = np.ravel(np.column_stack((np.zeros(len(told.start)), told.amount)))
    seconds = np.ravel(np.column_stack((np.zeros(len(told.start)), told.seconds)))
    out = []
    for each in (amounts, seconds):
        total = np.cumsum(each)
        at_end, at_start = (np.interp(edge, edges, total) for edge in (windows.end, windows.start))
        out.append(at_end - at_start)
    return out[0], out[1]


def held(series: Series) -> Stretches:
    """A value that holds from its sample to the next, times seconds."""
    near = _near(series)
    start, end = series.at[:-1][near], series.at[1:][near]
    return Stretches(start, end, series.value[:-1][near] * (end - start) / NS)


def slowed(chip: Sampled) -> dict[str, Stretches]:
    """By what holds clocks down: for how many seconds it did. A counter of that goes before samples of the state."""
    found: dict[str, Stretches] = {}
    for what, series in chip.series.items():
        if what.startswith(FLAG):
            name, told = what.removeprefix(FLAG), held(series)
            found.setdefault(name, told._replace(amount=told.amount / 100))
        elif what.startswith(COUNTER) and len(series.at) > 1:
            grew = np.diff(series.value)
            kept = grew >= 0
            start, end = series.at[:-1][kept], series.at[1:][kept]
            amount = np.minimum(grew[kept], (end - start) / NS)
            found[what.removeprefix(COUNTER)] = Stretches(start, end, amount)
    return found
