"""When each run's time was spent: pieces of time with their share of it, cut at the edges of periods."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analyzers.fleet.base import FleetRun
from analyzers.fleet.once import free_share
from analyzers.fleet.spent import Spent, heading_of
from analyzers.intervals import Spans

EVEN = ""  # the heading of what is spread evenly over the time held
_S = 1_000_000_000


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


@dataclass(frozen=True)
class Laid:
    """Runs laid out in time. `lots`: (position of the run, heading), `lot_of`: its position by both."""

    lots: tuple[tuple[int, str], ...]
    lot_of: dict[tuple[int, str], int]
    pieces: Pieces


def laid_out(runs: Sequence[FleetRun]) -> Laid:
    """Every run that tells a time of day, by the headings that its accounts need."""
    lots: list[tuple[int, str]] = []
    starts, ends, shares, counts = list[int](), list[int](), list[float](), list[int]()
    for n, run in enumerate(runs):
        if run.spent is None or not run.spent.held:
            continue
        for heading in _headings(run.spent):
            first = len(starts)
            if heading == EVEN:
                _lay_evenly(run.spent, starts, ends, shares)
            else:
                _lay_cells(run.spent, heading, starts, ends, shares)
            lots.append((n, heading))
            counts.append(len(starts) - first)
    lot = np.repeat(np.arange(len(lots)), counts)
    amount = np.array(shares, dtype=float)
    whole = np.bincount(lot, amount, len(lots))
    pieces = Pieces(lot, np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64), amount / whole[lot])
    return Laid(tuple(lots), {key: i for i, key in enumerate(lots)}, pieces)


def heading_in(spent: Spent, path: str) -> str:
    """Under which heading an account's time lies in the cells of its run; EVEN where these do not tell."""
    heading = heading_of(path)
    told = spent.cells is not None and any(spent.cells.of.get(heading, ()))
    return heading if told else EVEN


def _headings(spent: Spent) -> list[str]:
    return list(dict.fromkeys(heading_in(spent, e.path) for e in spent.entries))


def _lay_evenly(spent: Spent, starts: list[int], ends: list[int], shares: list[float]) -> None:
    for a, b in spent.held:
        starts.append(a)
        ends.append(b)
        shares.append(float(b - a))


def _lay_cells(spent: Spent, heading: str, starts: list[int], ends: list[int], shares: list[float]) -> None:
    """The cells that hold any of it; the first and the last end with the run."""
    cells = spent.cells
    assert cells is not None
    width, first, last = cells.each_s * _S, spent.held[0][0], spent.held[-1][1]
    for i, us in enumerate(cells.of[heading]):
        if us > 0:
            at = cells.start_s * _S + i * width
            starts.append(max(at, first))
            ends.append(min(at + width, last))
            shares.append(float(us))


def once(laid: Laid, run_ids: Sequence[str], taken: Mapping[str, Spans]) -> Laid:
    """With what other runs tell already taken off; inside an hour in proportion to its time."""
    if not taken:
        return laid
    pieces, share = laid.pieces, laid.pieces.share.copy()
    owner = np.array([n for n, _ in laid.lots], dtype=np.int64)[pieces.lot]
    for n, run_id in enumerate(run_ids):
        if run_id in taken:
            mine = owner == n
            share[mine] *= free_share(taken[run_id], pieces.start[mine], pieces.end[mine])
    return replace(laid, pieces=replace(pieces, share=share))


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
