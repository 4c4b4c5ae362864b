"""Counters that only grow until their process starts again: what they grew by, restarts counted as a fresh start."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

Values = np.ndarray | pd.Series | Sequence[float | None]


def increments(values: Values) -> np.ndarray:
    """What each sample grew by since the known sample before it: float, NaN where it or every sample before is unknown.

    A sample below the one before means that the process started again and counted from zero: it grew by its own value.
    """
    samples = _floats(values)
    grown = np.full(len(samples), np.nan)
    known = np.flatnonzero(~np.isnan(samples))
    if len(known) > 1:
        found = samples[known]
        step = np.diff(found)
        grown[known[1:]] = np.where(step < 0, found[1:], step)
    return grown


def increase(values: Values) -> float | None:
    """What a counter grew by from its first to its last sample; None where fewer than two samples are known."""
    grown = increments(values)
    known = grown[~np.isnan(grown)]
    return float(known.sum()) if len(known) else None


def resets(values: Values) -> int:
    """How often a counter fell: how often its process started again while it was watched."""
    samples = _floats(values)
    return int((np.diff(samples[~np.isnan(samples)]) < 0).sum())


def _floats(values: Values) -> np.ndarray:
    if isinstance(values, pd.Series):
        return values.to_numpy(dtype=float, na_value=np.nan)
    return np.asarray(values, dtype=float)
