"""When runs' time was spent: pieces of time with their share of it, cut at the edges of periods."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

EVER_NS = (np.iinfo(np.int64).min, np.iinfo(np.int64).max)  # before and after all that is counted


@dataclass(frozen=True)
class Pieces:
    """Pieces of time: `lot` (which run's which heading), [start, end) in ns, and the share of the lot in each. Shares
    of a lot sum to 1, or to what is counted of it."""

    lot: np.ndarray
    start: np.ndarray
    end: np.ndarray
    share: np.ndarray

    def of(self, mine: np.ndarray) -> "Pieces":
        return Pieces(self.lot[mine], self.start[mine], self.end[mine], self.share[mine])


def cut(pieces: Pieces, at: Sequence[int]) -> Pieces:
    """The same pieces cut at instants (sorted), each part with its share of the time; what lies before the first and
    after the last is left out."""
    edges = np.asarray(at, dtype=np.int64)
    first = np.searchsorted(edges, pieces.start, side="right")
    last = np.searchsorted(edges, pieces.end, side="left")
    parts = np.maximum(last - first, 0) + 1
    owner = np.repeat(np.arange(len(parts)), parts)
    nth = np.arange(len(owner)) - np.repeat(np.cumsum(parts) - parts, parts)
    left = np.where(nth == 0, pieces.start[owner], edges[np.minimum(first[owner] + nth - 1, len(edges) - 1)])
    right = np.where(nth == parts[owner] - 1, pieces.end[owner], edges[np.minimum(first[owner] + nth, len(edges) - 1)])
    width = np.maximum(pieces.end - pieces.start, 1)[owner]
    done = Pieces(pieces.lot[owner], left, right, pieces.share[owner] * ((right - left) / width))
    return done.of((left >= edges[0]) & (left < edges[-1]) & (done.share > 0))
