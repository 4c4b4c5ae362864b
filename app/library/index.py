"""The rows of all runs as columns, a slot for each run: what is searched, sorted and counted. A million runs take less
than a gigabyte, and no row is made but of those that are shown.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from analyzers.fleet.packed import number_of
from app.library.coded import Coded
from app.library.columns import COLUMNS, Column, Row
from app.library.joined import Joined
from app.library.search import STATES, TEXTS, Query, text_of

TEXT, IS, NUMBER = "text ", "is ", "number "  # before the names of columns, where all stand together
FEW = 64  # runs whose place in the order is another, and is looked for one by one
_OF_TAGS: dict[str, Callable[[str, str], str]] = {
    "tag": lambda key, value: f"{key}={value}",
    "tag key": lambda key, _: key,
}
FACETS = ("chip", "kind", "model", "tag", "group")
_NONE_NS = np.iinfo(np.int64).min  # in place of a time that is not known
_MOST = float(2**1000)
_NUMBERS = tuple(c for c in COLUMNS if c.kind not in ("text", "date"))
_TEXTS: dict[str, Callable[[Row], Any]] = {
    **{name: of for name, of in TEXTS.items() if name != "id"},
    "group": lambda row: row.group or None,
    "tags": lambda row: tuple(row.tags.items()) or None,
    "notes": lambda row: row.notes or None,
    "problem": lambda row: row.problem,
}


class Index:
    """`version` is another with each change. Whoever changes it and whoever looks at it takes turns."""

    def __init__(self) -> None:
        self.version = 0
        self.ids: list[str] = []  # by slot; empty where it is free
        self.slots: dict[str, int] = {}
        self._folded: list[str] = []  # ids as searches compare them
        self._joined = Joined()  # these
        self.texts = {name: Coded() for name in _TEXTS}
        self.flags = {name: np.zeros(0, dtype=bool) for name in ("there", "readable", *STATES)}
        self.numbers = {column.name: np.zeros(0) for column in _NUMBERS}
        self.created_ns = np.zeros(0, dtype=np.int64)
        self.serials = np.zeros(0, dtype=np.int64)  # `version` when the slot was last filled
        self.spent = np.zeros(0, dtype=np.int64)  # a number that tells what a run spent from other amounts, 0: nothing
        self._free: list[int] = []
        self._order = np.zeros(0, dtype=np.int64)
        self._moved: set[int] = set()

    def __len__(self) -> int:
        return len(self.slots)

    def put(self, row: Row) -> None:
        """Keep what is told of a run, in the place of what was."""
        slot = self.slots.get(row.run_id)
        created = _NONE_NS if row.created_ns is None else max(min(row.created_ns, -_NONE_NS - 1), _NONE_NS + 1)
        if slot is None:
            slot = self._taken(row.run_id)
            self._moved.add(slot)
        elif (self.created_ns[slot], self.flags["readable"][slot]) != (created, row.readable):
            self._moved.add(slot)
        for name, of in _TEXTS.items():
            self.texts[name].put(slot, of(row))
        for name, holds in STATES.items():
            self.flags[name][slot] = holds(row)
        for column in _NUMBERS:
            self.numbers[column.name][slot] = _number(column.value(row))
        self.flags["there"][slot], self.flags["readable"][slot] = True, row.readable
        self.created_ns[slot] = created
        self.spent[slot] = number_of(row.spent) if row.spent else 0
        self.version += 1
        self.serials[slot] = self.version

    def differs(self, row: Row) -> bool:
        """Whether a row is another than is known, in what may come to be known of a run that is the same."""
        slot = self.slots[row.run_id]
        return (self.flags["readable"][slot], self.flags["pending"][slot]) != (row.readable, row.pending)

    def remove(self, run_id: str) -> None:
        slot = self.slots.pop(run_id, None)
        if slot is not None:
            self.ids[slot], self.flags["there"][slot] = "", False
            for text in self.texts.values():
                text.put(slot, None)
            self._moved.add(slot)
            self._free.append(slot)
            self.version += 1

    def _taken(self, run_id: str) -> int:
        if self._free:
            slot = self._free.pop()
            self.ids[slot], self._folded[slot] = run_id, text_of(run_id)
            self._joined.replaced(slot)
        else:
            slot = len(self.ids)
            self.ids.append(run_id)
            self._folded.append(text_of(run_id))
            if slot >= len(self.created_ns):
                self._grow(max(2 * slot, 64))
        self.slots[run_id] = slot
        return slot

    def _grow(self, slots: int) -> None:
        for text in self.texts.values():
            text.grow(slots)
        for arrays in (self.flags, self.numbers):
            for name, values in arrays.items():
                arrays[name] = _longer(values, slots)
        self.created_ns, self.serials = _longer(self.created_ns, slots), _longer(self.serials, slots)
        self.spent = _longer(self.spent, slots)

    def copied(self) -> dict[str, np.ndarray]:
        """All columns by slot, texts as the numbers of their values."""
        told = {"created_ns": self.created_ns, "spent": self.spent}
        told |= {IS + name: values for name, values in self.flags.items()}
        told |= {NUMBER + name: values for name, values in self.numbers.items()}
        told |= {TEXT + name: text.codes for name, text in self.texts.items()}
        return {name: values[: len(self.ids)].copy() for name, values in told.items()}

    def begin(self, run_ids: list[str], columns: Mapping[str, np.ndarray], values: Mapping[str, list[Any]]) -> None:
        """Fill what is empty with rows by slot: columns as `copied` tells them, and the values of texts; a slot without
        an id is free. Raises KeyError where one lacks."""
        texts = {name: Coded.of(values[name], columns[TEXT + name]) for name in self.texts}
        flags = {name: columns[IS + name] for name in self.flags}
        numbers = {name: columns[NUMBER + name] for name in self.numbers}
        self.created_ns, self.spent = columns["created_ns"], columns["spent"]
        self.texts, self.flags, self.numbers = texts, flags, numbers
        self.ids, self._folded = run_ids, [text_of(run_id) for run_id in run_ids]
        self.slots = {run_id: slot for slot, run_id in enumerate(run_ids) if run_id}
        self._free = [slot for slot in reversed(range(len(run_ids))) if not run_ids[slot]]  # the first is filled first
        self.version += 1
        self.serials = np.full(len(run_ids), self.version, dtype=np.int64)
        self._moved = set(range(len(run_ids)))

    def tidy(self) -> None:
        """Let go of texts that no run has any more, where they are many."""
        for text in self.texts.values():
            if len(text.values) > 2 * len(self.slots) + 1_000:
                text.tidy()

    def order(self) -> np.ndarray:
        """The slots in the order of the list: the newest first, those that cannot be read after them."""
        if len(self._moved) > FEW:
            self._order = self._sorted_anew()
        elif self._moved:
            moved = sorted(self._moved)
            order = self._order[~np.isin(self._order, moved)]
            for slot in (s for s in moved if self.flags["there"][s]):
                at = bisect_left(range(len(order)), self._key(slot), key=lambda n, order=order: self._key(order[n]))
                order = np.insert(order, at, slot)
            self._order = order
        self._moved = set()
        return self._order

    def _key(self, slot: int) -> tuple[bool, int, str]:
        readable = bool(self.flags["readable"][slot])
        created = int(self.created_ns[slot]) if readable else _NONE_NS
        return not readable, 0 if created == _NONE_NS else -created, self.ids[slot]

    def _sorted_anew(self) -> np.ndarray:
        there = np.flatnonzero(self.flags["there"])
        readable = self.flags["readable"][there]
        when = np.where(self.created_ns[there] == _NONE_NS, 0, -self.created_ns[there])
        when[~readable] = 0
        order = there[np.lexsort((when, ~readable))]
        key = when[np.lexsort((when, ~readable))]
        alike = np.flatnonzero((key[1:] == key[:-1]) & (np.diff(self.flags["readable"][order]) == 0))
        for first, last in _stretches(alike):  # of one instant, by their ids
            order[first : last + 1] = sorted(order[first : last + 1].tolist(), key=self.ids.__getitem__)
        return order

    def seen(self, hidden: Iterable[str]) -> np.ndarray:
        """Of each slot whether it is that of a run which is not among these."""
        seen = self.flags["there"].copy()
        seen[[self.slots[run_id] for run_id in hidden if run_id in self.slots]] = False
        return seen

    def matching(self, asked: Query, among: np.ndarray) -> np.ndarray:
        """Those of the slots of which a search holds, in their order."""
        for test in asked.tests:
            if len(among):
                among = among[test.over(self)[0][among]]
        return among

    def sorted(self, slots: np.ndarray, column: Column, down: bool) -> np.ndarray:
        """By a column; the order that they had among equals, and last of all what is not known."""
        values, known = self._values(column)
        mine, told = values[slots], known[slots]
        order = np.argsort(-mine[told] if down else mine[told], kind="stable")
        return np.concatenate((slots[told][order], slots[~told]))

    def _values(self, column: Column) -> tuple[np.ndarray, np.ndarray]:
        """(a number for each slot, whether it is known)."""
        if column.kind == "date":
            return self.created_ns, self.created_ns != _NONE_NS
        if column.name == "star":
            return self.flags["starred"].astype(float), self.flags["starred"]
        if column.kind == "text":
            text = self.texts[column.name]
            values = text.ranks(tags_key if column.name == "tags" else text_key)
        else:
            values = self.numbers[column.name]
        return values, ~np.isnan(values)

    def compared(self, column: Column) -> tuple[np.ndarray, np.ndarray]:
        """(the number of each slot, whether it is known) of a column that is no text."""
        return self._values(column)

    def facets(self, slots: np.ndarray) -> dict[str, dict[str, int]]:
        """How many of the runs have each chip, kind, model, tag and group, the most frequent first; of equal ones the
        one that comes first."""
        return {name: self.facet(name, slots) for name in FACETS}

    def facet(self, name: str, slots: np.ndarray, most: int | None = None) -> dict[str, int]:
        """`name`: a text, "tag" or "tag key"; `most`: how many values are told."""
        if name not in _OF_TAGS:
            told = self.texts[name].counted(slots, most)
            return {value: count for value, count, _ in told if value}
        of_tag, many, first = _OF_TAGS[name], Counter[str](), dict[str, tuple[int, int]]()
        for value, count, at in self.texts["tags"].counted(slots):
            for n, text in enumerate(of_tag(*tag) for tag in value):
                many[text] += count
                first[text] = min(first.get(text, (at, n)), (at, n))
        return {text: many[text] for text in sorted(many, key=lambda text: (-many[text], first[text]))[:most]}

    def ids_where(self, holds: Callable[[str], bool]) -> np.ndarray:
        """Of each slot whether something holds of the run's id."""
        found = np.zeros(len(self.created_ns), dtype=bool)
        found[: len(self.ids)] = np.fromiter(map(holds, self._folded), dtype=bool, count=len(self.ids))
        return found

    def created_or_zero(self, slots: np.ndarray) -> np.ndarray:
        """When runs were stored, ns since 1970; 0 where that is not known."""
        created = self.created_ns[slots]
        return np.where(created == _NONE_NS, 0, created)

    def ids_holding(self, word: str) -> np.ndarray:
        """Of each slot whether a word is in the run's id."""
        found = np.zeros(len(self.created_ns), dtype=bool)
        found[: len(self.ids)] = self._joined.holding(self._folded, word)
        return found

    def folded_ids(self) -> list[str]:
        """By slot, as searches compare them."""
        return list(self._folded)

    def keep_joined(self, ids: list[str], made: Joined) -> None:
        """Search ids by what was made of these, unless others stand in their places by now."""
        if self._folded[: len(ids)] == ids:
            self._joined = made

    def waiting(self, run_ids: Iterable[str]) -> set[str]:
        """Those of the runs whose numbers are not known yet."""
        flags = self.flags["pending"]
        return {run_id for run_id in run_ids if flags[self.slots[run_id]]}

    def ids_of(self, slots: np.ndarray) -> list[str]:
        return [self.ids[slot] for slot in slots.tolist()]


def _number(value: Any) -> float:
    return np.nan if value is None else float(max(min(value, _MOST), -_MOST))


def _longer(values: np.ndarray, length: int) -> np.ndarray:
    return np.concatenate((values, np.zeros(length - len(values), dtype=values.dtype)))


def _stretches(at: np.ndarray) -> Sequence[tuple[int, int]]:
    """(first, last) of each stretch of places of which each is like the one after it."""
    if not len(at):
        return ()
    breaks = np.flatnonzero(np.diff(at) != 1)
    first, last = np.append(0, breaks + 1), np.append(breaks, len(at) - 1)
    return list(zip(at[first].tolist(), (at[last] + 1).tolist(), strict=True))


def text_key(value: str | None) -> str | None:
    """What texts are sorted by: the same object where it is the same, of which there may be a million."""
    found = value.casefold() if value else None
    return value if found == value else found


def tags_key(value: tuple[tuple[str, str], ...] | None) -> str | None:
    return " ".join(f"{k}={v}" if v else k for k, v in value).casefold() or None if value else None
