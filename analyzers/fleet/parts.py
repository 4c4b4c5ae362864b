"""The fleet in parts: what each block of runs comes to, kept as long as its runs and what is counted of them are the
same, so that one run that is another has its own block summed anew and no other.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from analyzers.fleet.causes import Losses, losses
from analyzers.fleet.chosen import Block
from analyzers.fleet.counting import WHY_NOT, Asks, Counting, counting
from analyzers.fleet.hours import Pieces, cut
from analyzers.fleet.once import Twice
from analyzers.fleet.sums import Tally, distinct, tally
from analyzers.intervals import Spans

MARKS = ("archived", "demo", "live")


@dataclass(frozen=True, eq=False)
class Part:
    """What a block comes to. `groups`: by position in `names`. `undated`, `owned`: of what has no time of day, and of
    runs that name an owner. `kept`: chip-seconds that are counted of each row. `span`: from the first to the last
    instant of dated time, None where there is none. The others are as `FleetResult` tells them."""

    block: Block
    names: tuple[str, ...]
    groups: Tally
    undated: Tally
    owned: Tally
    losses: Losses
    kept: np.ndarray
    span: tuple[int, int] | None
    left_out: Counter[str]
    marks: Counter[str]
    owners: frozenset[str]
    unowned: int
    partly: int
    partly_chip_s: float
    evenly_chip_s: float


def part_of(block: Block, told: Counting, by: str) -> Part:
    columns, entries, kept, pieces = block.columns, told.entries, told.kept, told.pieces
    of, there, (names, group) = columns.of, kept > 0, columns.keys(by)
    why = np.bincount(told.why[told.why >= 0], minlength=len(WHY_NOT)).tolist()
    undated, owned = entries.of(entries.lot < 0), entries.of(of["owned"][entries.row])
    owners, owner = columns.keys("owner")
    tell = np.unique(owner[there & of["owned"] & ~np.isnan(of["flops"])])
    return Part(
        block=block,
        names=names,
        groups=tally(columns, entries, group[entries.row], len(names)),
        undated=tally(columns, undated, np.zeros(len(undated.row), dtype=np.int64), 1),
        owned=tally(columns, owned, np.zeros(len(owned.row), dtype=np.int64), 1),
        losses=losses(block, entries),
        kept=kept,
        span=(int(pieces.start.min()), int(pieces.end.max())) if len(pieces.lot) else None,
        left_out=Counter(dict(zip(WHY_NOT, why, strict=True))),
        marks=Counter({name: int(of[name][there].sum()) for name in MARKS}),
        owners=frozenset(owners[n] for n in tell.tolist()),
        unowned=int((there & ~of["owned"]).sum()),
        partly=len(told.partly),
        partly_chip_s=told.taken_off,
        evenly_chip_s=float(kept[of["evenly"]].sum()),
    )


def trend_of(told: Counting, bounds: Sequence[int]) -> Tally:
    """What is dated, by period: the nth from `bounds[n]` on."""
    wide, entries, parts = len(bounds) - 1, told.entries, cut(told.pieces, bounds)
    period = np.searchsorted(np.asarray(bounds), parts.start, side="right") - 1
    at, cell = _cells(parts, period, wide)
    dated = np.flatnonzero(entries.lot >= 0)
    lot = entries.lot[dated]
    first, last = np.searchsorted(at, lot * wide), np.searchsorted(at, (lot + 1) * wide)
    entry, begins = np.repeat(dated, last - first), np.cumsum(last - first) - (last - first)
    where = np.repeat(first - begins, last - first) + np.arange(len(entry))
    spread = entries.of(entry, entries.whole[entry] * cell[where])
    return tally(told.columns, spread, at[where] % wide, wide)


def _cells(pieces: Pieces, period: np.ndarray, wide: int) -> tuple[np.ndarray, np.ndarray]:
    """(lot and period in one number, in order, the share in each) where there is any: of all of them few hold any."""
    key = pieces.lot * wide + period
    there, where = distinct(key, int(key.max(initial=0)) + 1)
    summed = np.bincount(where, pieces.share, len(there))
    return there[summed != 0], summed[summed != 0]


@dataclass(eq=False)
class _Kept:
    """A block's part and its trend, with what they are made of."""

    block: Block
    again: np.ndarray
    taken: dict[int, Spans]
    part: Part
    bounds: tuple[int, ...] = ()
    trend: Tally | None = None
    told: Counting | None = field(default=None, repr=False)  # until the trend is there

    def holds(self, block: Block, again: np.ndarray, taken: dict[int, Spans]) -> bool:
        same = self.block.columns is block.columns and np.array_equal(self.block.mine, block.mine)
        return same and np.array_equal(self.again, again) and _same(self.taken, taken)


def _same(one: dict[int, Spans], other: dict[int, Spans]) -> bool:
    return one.keys() == other.keys() and all(spans is other[row] for row, spans in one.items())


class Parts:
    """The parts of one question, kept from one time that it is asked to the next. Whoever asks takes turns."""

    def __init__(self) -> None:
        self._kept: dict[int, _Kept] = {}

    def parts(self, blocks: Sequence[Block], asked: Asks, by: str, told: Twice) -> list[Part]:
        """What each block comes to in which a run is meant."""
        meant = {n: block for n, block in enumerate(blocks) if block.mine.any()}
        self._kept = {n: self._renewed(n, block, asked, by, told) for n, block in meant.items()}
        return [kept.part for kept in self._kept.values()]

    def trends(self, asked: Asks, told: Twice, bounds: Sequence[int]) -> list[Tally]:
        """What is dated of the parts that were told last, by period."""
        return [self._trend(kept, asked, told, tuple(bounds)) for kept in self._kept.values()]

    def _renewed(self, number: int, block: Block, asked: Asks, by: str, told: Twice) -> _Kept:
        again = told.again[block.slots] & block.mine
        rows = np.flatnonzero(told.taken[block.slots] & block.mine)
        taken = {row: told.elsewhere[int(block.slots[row])] for row in rows.tolist()}
        kept = self._kept.get(number)
        if kept is not None and kept.holds(block, again, taken):
            return kept
        counted = counting(block, asked, told)
        return _Kept(block, again, taken, part_of(block, counted, by), told=counted)

    def _trend(self, kept: _Kept, asked: Asks, told: Twice, bounds: tuple[int, ...]) -> Tally:
        if kept.trend is None or kept.bounds != bounds:
            kept.trend = trend_of(kept.told or counting(kept.block, asked, told), bounds)
            kept.bounds, kept.told = bounds, None
        return kept.trend
