"""Slice efficiency of elastic jobs: which part of its slices took steps, and which part was there, over time.

    stepping = integral of active / total over time / length of that time;  available likewise

The library counts time before the first known count as if no slice had been there; the exact rules leave it out.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.intervals import Spans, overlap_with, union
from analyzers.lost.goodput.entries import SLICES, Entries, numbers


@dataclass(frozen=True)
class SliceCounts:
    """Counts that hold from `time_ns` (`time_s`) on, in order of time."""

    time_ns: np.ndarray
    time_s: np.ndarray
    active: np.ndarray
    available: np.ndarray
    total: np.ndarray

    @property
    def table(self) -> pd.DataFrame:
        columns = {"time_ns": self.time_ns, "active": self.active, "available": self.available, "total": self.total}
        return pd.DataFrame(columns)

    @property
    def shares(self) -> np.ndarray:
        """Two rows: stepping and available part of the slices."""
        return np.stack((self.active, self.available)) / self.total


@dataclass(frozen=True)
class SliceEfficiency:
    """Parts of the slices, 0 to 1, averaged over time. `known_s`: seconds for which counts are known."""

    stepping: float
    available: float
    known_s: float


def slice_counts(log: Entries) -> SliceCounts:
    """The recorded counts. One that is missing counts as none active, none available, one in total."""
    at = log.at(SLICES)
    at = at[np.argsort(log.time_ns[at], kind="stable")]
    active, available = (np.nan_to_num(numbers(log.text[at], n)) for n in ("active", "available"))
    total = np.maximum(np.nan_to_num(numbers(log.text[at], "total"), nan=1.0), 1)
    return SliceCounts(log.time_ns[at], log.time_s[at], active, available, total)


def library_efficiency(counts: SliceCounts, start_s: float, end_s: float) -> SliceEfficiency | None:
    """By the library's rules over [start_s, end_s), s since the epoch; None without counts."""
    if not len(counts.time_ns):
        return None
    at = counts.time_s
    initial = int(np.searchsorted(at, start_s, side="right")) - 1
    after = int(np.searchsorted(at, end_s, side="left"))
    rows = np.arange(max(initial, 0), after)
    if end_s <= start_s or not len(rows):
        return SliceEfficiency(0.0, 0.0, 0.0)
    begin = np.maximum(at[rows], start_s)
    width = np.diff(begin, append=end_s)
    stepping, available = (counts.shares[:, rows] * width).sum(axis=1) / (end_s - start_s)
    return SliceEfficiency(float(stepping), float(available), float(width.sum()))


def exact_efficiency(counts: SliceCounts, held: Spans) -> SliceEfficiency | None:
    """Over the time in which slices were held and their counts are known; None where there is none."""
    if not len(counts.time_ns):
        return None
    held = union(held)
    last = int(held.end[-1]) if len(held.end) else int(counts.time_ns[-1])
    ends = np.append(counts.time_ns[1:], max(last, int(counts.time_ns[-1])))
    width = overlap_with(held, Spans(counts.time_ns, ends)).astype(float)
    known = float(width.sum())
    if not known:
        return None
    stepping, available = (counts.shares * width).sum(axis=1) / known
    return SliceEfficiency(float(stepping), float(available), known / 1e9)
