"""Interval algebra on integer nanoseconds: unions, overlaps, and painting a span so that it closes exactly.

Intervals are half open, [start, end). A list of them is two int64 arrays of equal length.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class Spans(NamedTuple):
    """Intervals [start, end), in any order, overlaps allowed; those with end <= start count as empty."""

    start: np.ndarray
    end: np.ndarray


def spans(start: Sequence[int] | np.ndarray = (), end: Sequence[int] | np.ndarray = ()) -> Spans:
    """Spans from two sequences, empty ones left out. Arrays without such are those that are given."""
    s, e = np.asarray(start, dtype=np.int64), np.asarray(end, dtype=np.int64)
    keep = e > s
    return Spans(s, e) if keep.all() else Spans(s[keep], e[keep])


NOTHING = spans()


def union(x: Spans) -> Spans:
    """The same instants as sorted, disjoint intervals. O(n log n)."""
    if len(x.start) == 0 or _apart(x):
        return x
    start, end = x
    if (start[1:] < start[:-1]).any():
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    end = np.maximum.accumulate(end)
    opens = np.concatenate(([True], start[1:] > end[:-1]))
    closes = np.concatenate((opens[1:], [True]))
    return Spans(start[opens], end[closes])


def _apart(x: Spans) -> bool:
    """Whether it is a union already, as most are: sorted, with something between each and the next."""
    return bool((x.start[1:] > x.end[:-1]).all() and (x.end >= x.start).all())


def joined(parts: Sequence[Spans]) -> Spans:
    """All intervals of several lists."""
    if len(parts) < 2:
        return parts[0] if parts else spans()
    return Spans(np.concatenate([p.start for p in parts]), np.concatenate([p.end for p in parts]))


def length(x: Spans) -> int:
    """Nanoseconds covered at least once."""
    u = union(x)
    return int((u.end - u.start).sum())


@dataclass(frozen=True)
class Painting:
    """A span cut into cells that carry one label each: `edges` (n + 1 instants) and `label` (n small integers)."""

    edges: np.ndarray
    label: np.ndarray

    @property
    def width(self) -> np.ndarray:
        return np.diff(self.edges)

    def amounts(self, labels: int) -> np.ndarray:
        """Nanoseconds by label, 0 to labels - 1. Their sum is the span, exactly."""
        out = np.zeros(labels, dtype=np.int64)
        np.add.at(out, self.label, self.width)
        return out

    def spans(self, label: int) -> Spans:
        """Where this label lies, neighbours merged."""
        here = self.label == label
        return union(Spans(self.edges[:-1][here], self.edges[1:][here]))


def paint(start: int, end: int, layers: Sequence[tuple[int, Spans]], ground: int = 0) -> Painting:
    """Label every instant of [start, end): `ground`, then each (label, spans) layer over those before it.

    Whatever the layers overlap, every nanosecond ends up in one cell, so amounts close exactly.
    """
    if end <= start:
        return Painting(np.array([start, start], dtype=np.int64), np.array([ground], dtype=np.int64))
    clipped = [(label, union(_clipped(x, start, end))) for label, x in layers if len(x.start)]
    ends = [[start, end], *(x.start for _, x in clipped), *(x.end for _, x in clipped)]
    edges = np.sort(np.concatenate([np.asarray(e, dtype=np.int64) for e in ends]))
    edges = edges[np.append(True, edges[1:] > edges[:-1])]  # faster than np.unique, which hashes
    label = np.full(len(edges) - 1, ground, dtype=np.int64)
    for code, x in clipped:
        turns = np.zeros(len(edges), dtype=np.int64)
        turns[np.searchsorted(edges, x.start)] += 1  # disjoint and sorted: no index occurs twice among starts
        turns[np.searchsorted(edges, x.end)] -= 1
        label[np.cumsum(turns)[:-1] > 0] = code
    return Painting(edges, label)


def _clipped(x: Spans, start: int, end: int) -> Spans:
    """What of each interval lies in [start, end)."""
    if len(x.start) and x.start.min() >= start and x.end.max() <= end:
        return spans(x.start, x.end)
    return spans(np.clip(x.start, start, end), np.clip(x.end, start, end))


def overlap_with(x: Spans, windows: Spans) -> np.ndarray:
    """Nanoseconds of the union of `x` inside each window (windows may overlap one another)."""
    u = union(x)
    if len(u.start) == 0:
        return np.zeros(len(windows.start), dtype=np.int64)
    before = np.concatenate(([0], np.cumsum(u.end - u.start)))

    def covered_until(t: np.ndarray) -> np.ndarray:
        i = np.searchsorted(u.start, t, side="right")
        last = np.maximum(i - 1, 0)
        return np.where(i > 0, before[last] + np.minimum(t, u.end[last]) - u.start[last], 0)

    return covered_until(windows.end) - covered_until(windows.start)


def common(x: Spans, y: Spans) -> tuple[Spans, np.ndarray]:
    """What lies in both, piece by piece, and for each piece which interval of `x` it is of.

    Both must be sorted and free of overlaps within themselves. O((n + pieces) log m).
    """
    first = np.searchsorted(y.end, x.start, side="right")
    after = np.searchsorted(y.start, x.end, side="left")
    owner, other = pairs(first, after)
    return Spans(np.maximum(x.start[owner], y.start[other]), np.minimum(x.end[owner], y.end[other])), owner


def outside(x: Spans, y: Spans) -> Spans:
    """The instants of `x` that do not lie in `y`, as sorted, disjoint intervals."""
    mine, other = union(x), union(y)
    if not len(mine.start) or not len(other.start):
        return mine
    return common(mine, _between(other, mine.start[0], mine.end[-1]))[0]


def idle(busy: Spans, windows: Spans) -> Spans:
    """What of disjoint, sorted windows lies outside `busy`, window by window."""
    if not len(windows.start):
        return windows
    return common(windows, _between(union(busy), windows.start[0], windows.end[-1]))[0]


def _between(x: Spans, start: int, end: int) -> Spans:
    """What lies between sorted, disjoint intervals, and beyond them as far as `start` and `end`."""
    begins = np.concatenate(([min(start, x.start.min(initial=start))], x.end))
    ends = np.concatenate((x.start, [max(end, x.end.max(initial=end))]))
    return spans(begins, ends)


def pairs(first: np.ndarray, after: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every (i, j) with first[i] <= j < after[i], in order of i and then of j."""
    count = np.maximum(after - first, 0)
    i = np.repeat(np.arange(len(count)), count)
    return i, np.arange(len(i)) - np.repeat(np.cumsum(count) - count, count) + first[i]
