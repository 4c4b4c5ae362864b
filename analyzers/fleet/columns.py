"""Runs of a fleet as columns: what each of them spent, by account and hour, as arrays that sums are made of.

Columns are never changed, others are made of them: what was summed of some stands as long as they are the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from analyzers.fleet.base import FleetRun, key_of

Keys = tuple[tuple[str, ...], np.ndarray]
MOST_KEYS = 8  # ways to count runs that are kept
TEXTS = ("run_id", "name", "kind", "chip", "model", "group", "job", "tags")  # tags: a mapping
FLAGS = ("simulated", "damaged", "pending", "archived", "demo", "live")
NUMBERS = ("chips", "goodput", "mfu")  # NaN where not known


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of some runs beside what they spent, a row each: by the names of TEXTS, and of FLAGS, NUMBERS and
    `created_ns`."""

    texts: dict[str, np.ndarray]
    of: dict[str, np.ndarray]


def known_of(runs: Sequence[FleetRun]) -> Known:
    of = {name: np.array([getattr(r, name) for r in runs], dtype=bool) for name in FLAGS}
    for name in NUMBERS:
        told = (getattr(r, name) for r in runs)
        of[name] = np.array([np.nan if value is None else value for value in told], dtype=float)
    of["created_ns"] = np.array([r.created_ns for r in runs], dtype=np.int64)
    return Known({name: objects([getattr(r, name) for r in runs]) for name in TEXTS}, of)


def objects(values: Sequence[object]) -> np.ndarray:
    """As they are, whatever they are."""
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


@dataclass(frozen=True, eq=False)
class Lists:
    """A list for each row, all in one: that of row n lies from `at[n]` to `at[n + 1]` in each of the arrays `of`."""

    at: np.ndarray
    of: dict[str, np.ndarray]

    def __getitem__(self, name: str) -> np.ndarray:
        return self.of[name]

    @cached_property
    def row(self) -> np.ndarray:
        """Of each item the row whose it is."""
        return np.repeat(np.arange(len(self.at) - 1), np.diff(self.at))

    def taken(self, rows: np.ndarray) -> "Lists":
        """The lists of these rows."""
        length = np.diff(self.at)[rows]
        at = offsets(length)
        where = np.repeat(self.at[:-1][rows] - at[:-1], length) + np.arange(at[-1])
        return Lists(at, {name: values[where] for name, values in self.of.items()})


def offsets(length: np.ndarray) -> np.ndarray:
    """Where each of these begins, one after the other, and where the last ends."""
    return np.concatenate(([0], np.cumsum(length, dtype=np.int64)))


@dataclass(frozen=True, eq=False)
class Columns:
    """Some runs, a row each.

    texts     what each run is called, and runs are counted under (`TEXTS`)
    of        by row: what is known of each run, as numbers (`laying.py`)
    entries   `chip_s` of an account (`path`: its position in `paths`), and which `lot` of its run it lies in, -1 of
              one without a time of day
    pieces    when the lots of a run were spent: the `share` of a `lot` in [`start`, `end`), ns since 1970; those of one
              lot sum to 1
    held      [`start`, `end`), ns since 1970
    files     which inputs a run was made of, as numbers
    """

    texts: dict[str, np.ndarray]
    paths: tuple[str, ...]
    of: dict[str, np.ndarray]
    entries: Lists
    pieces: Lists
    held: Lists
    files: Lists
    _keys: dict[str, Keys] = field(default_factory=dict[str, Keys])

    def __len__(self) -> int:
        return len(self.of["stamp"])

    def run(self, row: int) -> FleetRun:
        """Without what it spent."""
        told: dict[str, Any] = {name: values[row] for name, values in self.texts.items()}
        told |= {name: bool(self.of[name][row]) for name in FLAGS}
        told |= {name: None if np.isnan(value := self.of[name][row]) else float(value) for name in NUMBERS}
        return FleetRun(**told, created_ns=int(self.of["created_ns"][row]))

    @cached_property
    def lot_at(self) -> np.ndarray:
        """Where the lots of each row begin among all, and how many there are."""
        return offsets(self.of["lots"])

    def keys(self, by: str) -> Keys:
        """(names, of each row which of these it is counted under)."""
        found = self._keys.get(by)
        if found is None:
            names: dict[str, int] = {}
            code = {value: names.setdefault(key, len(names)) for value, key in self._keys_by(by).items()}
            codes = np.fromiter(map(code.__getitem__, map(id, self._told_by(by))), dtype=np.int64, count=len(self))
            if len(self._keys) >= MOST_KEYS:
                self._keys.clear()
            found = self._keys[by] = tuple(names), codes
        return found

    def _told_by(self, by: str) -> np.ndarray:
        """What tells under which key each run is counted."""
        return self.texts[by if by in TEXTS else "tags"]

    def _keys_by(self, by: str) -> dict[int, str]:
        """The key of each value that tells it, by the value's `id`: few have one of their own."""
        name = by if by in TEXTS else "tags"
        values = {id(value): value for value in self._told_by(by)}
        none: dict[str, Any] = {"run_id": "", "name": ""}
        return {i: key_of(FleetRun(**none | {name: value}), by) for i, value in values.items()}

    def keep_keys(self, of: "Columns", rows: Sequence[int], fresh: "Columns") -> None:
        """Take over what other columns are counted under, which are these but for some rows: these are fresh."""
        for by, (names, codes) in list(of._keys.items()):
            code = {name: n for n, name in enumerate(names)}
            more, which = fresh.keys(by)
            codes = codes.copy()
            codes[list(rows)] = np.array([code.setdefault(name, len(code)) for name in more], dtype=np.int64)[which]
            if len(code) <= 2 * len(self):  # or most are names that no row has any more
                self._keys[by] = tuple(code), codes

    def taken(self, rows: np.ndarray) -> "Columns":
        """These rows, in this order."""
        return Columns(
            texts={name: values[rows] for name, values in self.texts.items()},
            paths=self.paths,
            of={name: values[rows] for name, values in self.of.items()},
            entries=self.entries.taken(rows),
            pieces=self.pieces.taken(rows),
            held=self.held.taken(rows),
            files=self.files.taken(rows),
        )


def joined(parts: Sequence[Columns]) -> Columns:
    """The rows of all, one after the other."""
    paths: dict[str, int] = {}
    maps = [np.array([paths.setdefault(p, len(paths)) for p in part.paths], dtype=np.int32) for part in parts]
    entries = _together([part.entries for part in parts])
    entries.of["path"] = np.concatenate([m[part.entries["path"]] for m, part in zip(maps, parts, strict=True)])
    return Columns(
        texts={name: np.concatenate([part.texts[name] for part in parts]) for name in TEXTS},
        paths=tuple(paths),
        of={name: np.concatenate([part.of[name] for part in parts]) for name in parts[0].of},
        entries=entries,
        pieces=_together([part.pieces for part in parts]),
        held=_together([part.held for part in parts]),
        files=_together([part.files for part in parts]),
    )


def _together(parts: Sequence[Lists]) -> Lists:
    length = np.concatenate([np.diff(part.at) for part in parts])
    return Lists(offsets(length), {name: np.concatenate([part[name] for part in parts]) for name in parts[0].of})
