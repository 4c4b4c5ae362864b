"""How far steps are from the ideal step: the ideal itself, each step's deviation, and how spiky they are.

    ideal step   by the library: mean of the steps that take no longer than median + 3 MAD (MAD: median of
                 |t - median|), steps under a second left out; by the exact rules: mean of those within 3 MAD, and
                 within 5 % at least, of the median, whatever a step takes
    deviation    |time of the step - ideal step|
    spikiness    over the deviations in order: with fewer than 100 steps their mean; else the 90th percentile of the
                 last 100, cumulatively (from 1,100 steps on) less the median of the 1,000 before them
    spike        a step beyond the median of the 21 steps around it by 6 MAD (some 4 standard deviations), and by 5 %
                 at least: a slower phase of the job is no row of spikes. MAD here: of each step from its own median

Source of the library's rules: ml-goodput-measurement 0.2.3.
"""

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import median_filter

RECENT, BASELINE, PERCENTILE = 100, 1000, 90
NEAR = 0.05  # of the median: steps this close to it are alike, however regular the others are
AROUND = 21  # steps that a step is compared with, itself included
SPIKE_MADS = 6


@dataclass(frozen=True)
class Spikes:
    """The two figures of spikiness, s; 0 without steps."""

    cumulative_s: float
    interval_s: float


def library_ideal_s(times: np.ndarray, least_s: float) -> float | None:
    """The library's ideal step of step times in s; None without one of at least `least_s`."""
    times = times[times >= least_s]
    if not len(times):
        return None
    median = np.median(times)
    return float(times[times <= median + 3 * np.median(np.abs(times - median))].mean())


def ideal_step_s(times: np.ndarray) -> float | None:
    """The ideal step by the exact rules; None without a step."""
    if not len(times):
        return None
    median = np.median(times)
    off = np.abs(times - median)
    return float(times[off <= max(3 * np.median(off), NEAR * median)].mean())


def are_spikes(times: np.ndarray) -> np.ndarray:
    """Which of the step times, in their order, are spikes. O(n)."""
    if not len(times):
        return np.zeros(0, dtype=bool)
    median = median_filter(times, AROUND)
    mad = median_filter(np.abs(times - median), AROUND)
    return times > median + np.maximum(SPIKE_MADS * mad, NEAR * median)


def spikes(deviation: np.ndarray) -> Spikes:
    """Spikiness of deviations in s, in the order of the steps."""
    size = np.abs(deviation)
    if not len(size):
        return Spikes(0.0, 0.0)
    if len(size) < RECENT:
        return Spikes(float(size.mean()), float(size.mean()))
    recent = float(np.percentile(size[-RECENT:], PERCENTILE))
    if len(size) < RECENT + BASELINE:
        return Spikes(recent, recent)
    return Spikes(recent - float(np.median(size[-RECENT - BASELINE : -RECENT])), recent)
