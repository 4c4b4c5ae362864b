"""The runs of which something is counted, one by one: made of those that are asked for."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import nsmallest
from typing import overload

import numpy as np

from analyzers.fleet.base import FleetRun
from analyzers.fleet.parts import Part


@dataclass(frozen=True, kw_only=True)
class Counted:
    """A run's part: chip-seconds that are counted, of `whole_chip_s` that its ledger holds. `run`: without what it
    spent."""

    run: FleetRun
    chip_s: float
    whole_chip_s: float
    usd: float | None


class CountedRuns(Sequence[Counted]):
    """The largest first, of equal ones by their ids."""

    def __init__(self, parts: Sequence[Part]):
        self._parts = parts
        there = [np.flatnonzero(part.kept > 0) for part in parts]
        self._part = np.repeat(np.arange(len(parts)), [len(rows) for rows in there])
        self._row = np.concatenate([np.zeros(0, dtype=np.int64), *there])
        self._chip_s = np.concatenate([np.zeros(0), *(p.kept[rows] for p, rows in zip(parts, there, strict=True))])

    def __len__(self) -> int:
        return len(self._chip_s)

    def __iter__(self) -> Iterator[Counted]:
        return iter(self[:])

    @overload
    def __getitem__(self, at: int) -> Counted: ...
    @overload
    def __getitem__(self, at: slice) -> list[Counted]: ...
    def __getitem__(self, at: int | slice) -> Counted | list[Counted]:
        if isinstance(at, int):
            return self._told(self._largest(len(self))[at])
        first = at.stop if at.step is None and at.stop is not None and at.stop >= 0 else len(self)
        return [self._told(n) for n in self._largest(first)[at]]

    def beyond(self, most: int) -> tuple[int, float]:
        """(how many there are but the `most` largest, their chip-seconds)."""
        if most >= len(self):
            return 0, 0.0
        least = self._least(most)
        less = self._chip_s < least
        alike = len(self) - most - int(less.sum())  # of those that are as large as the last of the largest
        return len(self) - most, float(self._chip_s[less].sum() + (alike * least if alike else 0.0))

    @cached_property
    def tags(self) -> Counter[str]:
        """How many of them have each key of a tag."""
        told = [tags for part in self._parts for tags in part.block.columns.texts["tags"][part.kept > 0]]
        of, found = {id(tags): tags for tags in told}, Counter[str]()
        for i, many in Counter(map(id, told)).items():
            found.update(dict.fromkeys(of[i], many))
        return found

    def _largest(self, count: int) -> list[int]:
        """The positions of so many, in their order. Of very many the others are put in none."""
        least = self._least(count)
        more, alike = (np.flatnonzero(some).tolist() for some in (self._chip_s > least, self._chip_s == least))
        first = sorted((-self._chip_s[n], self._run_id(n), n) for n in more)
        last = nsmallest(max(count - len(more), 0), ((self._run_id(n), n) for n in alike))
        return [n for _, _, n in first] + [n for _, n in last]

    def _least(self, count: int) -> float:
        """What the last of so many largest held; more than any where it is none of them, nothing where it is all."""
        if count <= 0:
            return np.inf
        return float(np.partition(self._chip_s, -count)[-count]) if count < len(self) else 0.0

    def _run(self, n: int) -> FleetRun:
        return self._parts[self._part[n]].block.columns.run(self._row[n])

    def _run_id(self, n: int) -> str:
        return self._parts[self._part[n]].block.columns.texts["run_id"][self._row[n]]

    def _told(self, n: int) -> Counted:
        of, row, chip_s = self._parts[self._part[n]].block.columns.of, self._row[n], float(self._chip_s[n])
        price = float(of["usd_per_chip_s"][row])
        return Counted(
            run=self._run(n),
            chip_s=chip_s,
            whole_chip_s=float(of["whole"][row]),
            usd=None if np.isnan(price) else price * chip_s,
        )
