"""All runs of a store in blocks of columns, kept as runs change, and some of these runs, of which is asked."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np

from analyzers.fleet.base import ITS_TEAM, FleetRun
from analyzers.fleet.columns import Columns, joined
from analyzers.fleet.laying import columns_of, replaced
from analyzers.intervals import Spans

BLOCK = 4096  # runs that are summed anew where one of them is another
FEW = 4  # of so many runs at most one is chosen: these are put together before they are summed


@dataclass(frozen=True, eq=False)
class Block:
    """Some columns, with which of their rows are meant (`mine`), their slots, and how early each row is among all."""

    columns: Columns
    mine: np.ndarray
    slots: np.ndarray
    rank: np.ndarray


@dataclass(frozen=True)
class Judged:
    """What `once.py` found out of runs, by which these are and in which state: kept as long as they are the same."""

    again: dict[tuple[bytes, ...], list[int]] = field(default_factory=dict[tuple[bytes, ...], list[int]])
    jobs: dict[tuple[int, ...], dict[int, Spans]] = field(default_factory=dict[tuple[int, ...], dict[int, Spans]])


@dataclass(frozen=True, eq=False)
class Chosen:
    """Runs by their `slots`, in the order in which they are listed: slot n is row n % size of block n // size.
    `judged`: what was found out of those that share a job or an input."""

    blocks: tuple[Columns, ...]
    size: int
    slots: np.ndarray
    judged: Judged = field(default_factory=Judged)

    def __len__(self) -> int:
        return len(self.slots)

    @property
    def runs(self) -> Iterator[FleetRun]:
        return (self.run(slot) for slot in self.slots.tolist())

    def run(self, slot: int) -> FleetRun:
        return self.blocks[slot // self.size].run(slot % self.size)

    def stamp(self, slot: int) -> int:
        """Another one of each run, and of one run whenever it is another."""
        return int(self.blocks[slot // self.size].of["stamp"][slot % self.size])

    def held(self, slot: int) -> Spans:
        held, row = self.blocks[slot // self.size].held, slot % self.size
        mine = slice(held.at[row], held.at[row + 1])
        return Spans(held["start"][mine], held["end"][mine])

    def flags(self, slots: Sequence[int] | np.ndarray) -> np.ndarray:
        """Of each slot whether it is one of these."""
        found = np.zeros(len(self.blocks) * self.size, dtype=bool)
        found[np.asarray(slots, dtype=np.int64)] = True
        return found

    def only(self, mine: np.ndarray) -> "Chosen":
        """Those of them for which this holds, in their order."""
        return Chosen(self.blocks, self.size, self.slots[mine], self.judged)

    def known(self, name: str) -> np.ndarray:
        """What is known of each run, by row of the columns; see `laying.py`."""
        return np.concatenate([block.of[name] for block in self.blocks or (_empty(0),)])[self.slots]

    @cached_property
    def team(self) -> tuple[list[str], np.ndarray]:
        """(teams, of each run which of them is its own); that of none is empty."""
        names: dict[str, int] = {}
        told = [block.keys(ITS_TEAM) for block in self.blocks]
        codes = [np.array([names.setdefault(n, len(names)) for n in some], dtype=np.int64)[c] for some, c in told]
        return list(names), np.concatenate([np.zeros(0, dtype=np.int64), *codes])[self.slots]

    @cached_property
    def rank(self) -> np.ndarray:
        """Of each slot how early its run is among them; nothing of others."""
        rank = np.zeros(len(self.blocks) * self.size, dtype=np.int64)
        rank[self.slots] = np.arange(len(self.slots))
        return rank

    @cached_property
    def as_stored(self) -> tuple[Block, ...]:
        """All blocks, each with those of its rows that are meant."""
        mine, slots = self.flags(self.slots), np.arange(len(self.rank))
        at = [slice(n * self.size, (n + 1) * self.size) for n in range(len(self.blocks))]
        return tuple(Block(c, mine[s], slots[s], self.rank[s]) for c, s in zip(self.blocks, at, strict=True))

    @cached_property
    def summed_up(self) -> tuple[Block, ...]:
        """What has the least work where nothing is kept of the blocks: a few runs put together."""
        if len(self.blocks) == 1 or len(self) * FEW > len(self.blocks) * self.size:
            return self.as_stored
        some = [block for block in self.as_stored if block.mine.any()]
        if not some:
            return ()
        columns = joined([block.columns.taken(np.flatnonzero(block.mine)) for block in some])
        slots = np.concatenate([block.slots[block.mine] for block in some])
        return (Block(columns, np.ones(len(slots), dtype=bool), slots, self.rank[slots]),)


Runs = Sequence[FleetRun] | Chosen


def chosen_of(runs: Runs) -> Chosen:
    if isinstance(runs, Chosen):
        return runs
    return Chosen((columns_of(runs),), max(len(runs), 1), np.arange(len(runs)))


class Book:
    """The runs of a store by slot. Whoever changes it takes turns; what was chosen of it stays as it was."""

    def __init__(self, size: int = BLOCK):
        self.size = size
        self.blocks: list[Columns] = []
        self._judged = Judged()

    def put(self, runs: Mapping[int, FleetRun]) -> None:
        """Keep these runs in these slots, in the place of what was there."""
        self.lay(list(runs), columns_of(list(runs.values())))

    def lay(self, slots: Sequence[int], fresh: Columns) -> None:
        """Keep these rows in these slots."""
        by_block: dict[int, list[int]] = {}
        for row, slot in enumerate(slots):
            by_block.setdefault(slot // self.size, []).append(row)
        for number, rows in by_block.items():
            while len(self.blocks) <= number:
                self.blocks.append(_empty(self.size))
            some = fresh if len(by_block) == 1 else fresh.taken(np.array(rows))
            self.blocks[number] = replaced(self.blocks[number], [slots[row] % self.size for row in rows], some)

    def chosen(self, slots: np.ndarray) -> Chosen:
        return Chosen(tuple(self.blocks), self.size, slots, self._judged)


@cache
def _empty(size: int) -> Columns:
    """No run in any row."""
    return columns_of([FleetRun(run_id="", name="")] * size)
