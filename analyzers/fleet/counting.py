"""What is counted of some runs: which of them, and which part of each of their entries."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from analyzers.fleet.chosen import Block
from analyzers.fleet.columns import Columns
from analyzers.fleet.hours import EVER_NS, Pieces, cut
from analyzers.fleet.once import Twice, free_share
from analyzers.intervals import Spans

WHY_NOT = (
    *("damaged", "compiled", "simulated", "measured", "pending", "no_ledger", "chips_unknown", "undated"),
    *("told_again", "told_elsewhere", "outside"),
)
"""Why a run is not counted, in the order in which it is looked."""
COUNTED, NOT_MEANT = -1, -2


class Asks(Protocol):
    """What says which time of which runs is counted."""

    @property
    def since_ns(self) -> int | None: ...
    @property
    def until_ns(self) -> int | None: ...
    @property
    def simulated(self) -> bool: ...


@dataclass(frozen=True, eq=False)
class Entries:
    """Entries by `row` and `path` of columns: `chip_s` that are counted of the `whole`, and the `lot` of all runs that
    they lie in, -1 of one without a time of day."""

    row: np.ndarray
    path: np.ndarray
    chip_s: np.ndarray
    whole: np.ndarray
    lot: np.ndarray

    def of(self, mine: np.ndarray, chip_s: np.ndarray | None = None) -> "Entries":
        """Some of them, with other amounts where these are given."""
        amount = self.chip_s[mine] if chip_s is None else chip_s
        return Entries(self.row[mine], self.path[mine], amount, self.whole[mine], self.lot[mine])


@dataclass(frozen=True, eq=False)
class Counting:
    """`why`: of each row why it is not counted, as a position in `WHY_NOT`, else COUNTED or NOT_MEANT. `entries`: those
    of which something is counted, and `pieces`: when. `kept`: chip-seconds that are counted of each row. `partly`: rows
    of whose time another run of the job tells some, `taken_off` of it in chip-seconds."""

    columns: Columns
    why: np.ndarray
    entries: Entries
    pieces: Pieces
    kept: np.ndarray
    partly: np.ndarray
    taken_off: float


def why_not(columns: Columns, asked: Asks) -> np.ndarray:
    """Why each run may not be counted whatever others there are, as a position in `WHY_NOT`; COUNTED where it may."""
    of, timed = columns.of, asked.since_ns is not None or asked.until_ns is not None
    holds = {
        "damaged": of["damaged"],
        "compiled": of["compiled"],
        "measured" if asked.simulated else "simulated": of["simulated"] != asked.simulated,
        "pending": of["pending"],
        "no_ledger": of["whole"] <= 0,
        "chips_unknown": ~of["chips_known"],
        "undated": ~of["dated"] & timed,
    }
    return np.select(list(holds.values()), [WHY_NOT.index(why) for why in holds], COUNTED)


def counting(block: Block, asked: Asks, told: Twice) -> Counting:
    columns, window = block.columns, _window(asked)
    why = np.where(block.mine, why_not(columns, asked), NOT_MEANT)
    why[(why == COUNTED) & told.again[block.slots]] = WHY_NOT.index("told_again")
    may = why == COUNTED
    taken = np.flatnonzero(may & told.taken[block.slots])
    whole, own = _pieces(columns, may)
    pieces = _within(_once(whole, own, {row: told.elsewhere[int(block.slots[row])] for row in taken.tolist()}), window)
    part, listed = _parts(pieces, columns), columns.entries
    lot = np.where(listed["lot"] < 0, -1, columns.lot_at[listed.row] + listed["lot"])
    chip_s = listed["chip_s"] * part[lot] * may[listed.row]
    kept = np.bincount(listed.row, chip_s, len(columns))
    partly = taken[kept[taken] > 0]
    before = np.isin(listed.row, partly)
    before_part = _parts(_within(whole.of(np.isin(own, partly)), window), columns)
    lost = listed["chip_s"][before] * before_part[lot[before]] - chip_s[before]
    none = np.flatnonzero(may & (kept <= 0))
    why[none] = WHY_NOT.index("outside")
    why[none[_tells_of(columns, none, window) & told.taken[block.slots[none]]]] = WHY_NOT.index("told_elsewhere")
    all_entries = Entries(listed.row, listed["path"], chip_s, listed["chip_s"], lot)
    return Counting(columns, why, all_entries.of(chip_s > 0), pieces, kept, partly, float(lost.sum()))


def _window(asked: Asks) -> tuple[int, int]:
    since = EVER_NS[0] if asked.since_ns is None else asked.since_ns
    return since, EVER_NS[1] if asked.until_ns is None else asked.until_ns


def _pieces(columns: Columns, may: np.ndarray) -> tuple[Pieces, np.ndarray]:
    """(when the time of the runs that may be counted was spent, and whose each piece is)."""
    of, mine = columns.pieces, np.flatnonzero(may[columns.pieces.row])
    own = of.row[mine]
    return Pieces(columns.lot_at[own] + of["lot"][mine], of["start"][mine], of["end"][mine], of["share"][mine]), own


def _once(whole: Pieces, own: np.ndarray, taken: dict[int, Spans]) -> Pieces:
    """With what other runs tell already taken off; inside an hour in proportion to its time."""
    if not taken:
        return whole
    share = whole.share.copy()
    for row, spans in taken.items():
        mine = slice(*np.searchsorted(own, [row, row + 1]))
        share[mine] *= free_share(spans, whole.start[mine], whole.end[mine])
    return replace(whole, share=share)


def _within(pieces: Pieces, window: tuple[int, int]) -> Pieces:
    if window == EVER_NS:
        return pieces.of((pieces.share > 0) & (pieces.end > pieces.start))
    return cut(pieces, window)


def _parts(pieces: Pieces, columns: Columns) -> np.ndarray:
    """Of each lot the part that lies in these, and at last all of what lies in none."""
    return np.append(np.bincount(pieces.lot, pieces.share, int(columns.lot_at[-1])), 1.0)


def _tells_of(columns: Columns, rows: np.ndarray, window: tuple[int, int]) -> np.ndarray:
    """Of each of these rows whether chips were held in that time."""
    held = columns.held.taken(rows)
    there = (held["start"] < window[1]) & (held["end"] > window[0])
    return np.bincount(held.row, there, len(rows)) > 0
