"""What a timeline is: lanes of rows, events in order of row and start, and the levels over them."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from analyzers.timeline.lanes import Lane
from analyzers.timeline.pyramid import Ints, Pyramid


@dataclass(frozen=True)
class Row:
    """A lane with its rows. `first_row`: of the timeline's; `busy_ticks`: time that at least one of its events
    covers; `by_code`: (account, ticks of events of it), of those that it has."""

    lane: Lane
    first_row: int
    rows: int
    events: int
    busy_ticks: int
    start: int
    end: int
    by_code: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Timeline:
    """Events in order of row and start, with what they are. Times in ticks of `tick_ps` since `origin_ns`; `dated`:
    whether that is a time of day. `name`: number in `names`; `number`, `capture`, `event`, `op`: see `Part`. `stored`:
    events that the run holds; `strips`: stretches of accounts, which are drawn beside them; `kinds`: the numbers that
    events have by kinds.

    Columns may be memory maps of files, and whole numbers in them of 32 bits: see `pyramid.py`."""

    lanes: tuple[Row, ...]
    tiles: Pyramid
    tick_ps: int
    origin_ns: int
    dated: bool
    names: tuple[str, ...]
    name: NDArray[np.int32]
    number: Ints
    capture: NDArray[np.int32]
    event: Ints
    op: Ints
    stored: int
    strips: int
    notes: tuple[str, ...] = field(default=())
    kinds: tuple[int, ...] = ()
    held_bytes: int = 0  # of memory; columns that are memory maps are not counted

    @property
    def span(self) -> int:
        """Ticks from the first event to the end of the last."""
        return max((lane.end for lane in self.lanes), default=0)

    @property
    def events(self) -> int:
        return len(self.tiles.start)

    @property
    def codes(self) -> tuple[int, ...]:
        """Accounts that events are of."""
        return tuple(sorted({code for row in self.lanes for code, _ in row.by_code}))
