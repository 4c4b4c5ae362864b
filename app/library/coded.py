"""A column of texts, or of what else runs have in common: each value is kept once, and of each run its number. What a
search asks of a value is asked once for all runs that have it.
"""

from bisect import bisect_left
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from app.library.joined import Joined

FEW = 64  # values that came since the ranks were made, and are put between the others one by one
SPARE = 1_000  # values that no run has any more, before they are let go


class Coded:
    """The value of each slot; None where there is none."""

    def __init__(self, slots: int = 0):
        self.values: list[Any] = [None]
        self.codes = np.zeros(slots, dtype=np.int32)
        self._code: dict[Hashable, int] = {None: 0}
        self._told: dict[Callable[[Any], Any], list[Any]] = {}
        self._ranked: dict[Callable[[Any], Any], Ranked] = {}
        self._joined: dict[Callable[[Any], str], Joined] = {}

    @staticmethod
    def of(values: list[Any], codes: np.ndarray) -> "Coded":
        """`values`: each once, None first; `codes`: by slot which of them."""
        made = Coded()
        made.values, made.codes = values, codes
        made._code = {value: code for code, value in enumerate(values)}
        return made

    def put(self, slot: int, value: Any) -> None:
        code = self._code.get(value)
        if code is None:
            code = self._code[value] = len(self.values)
            self.values.append(value)
        self.codes[slot] = code

    def at(self, slot: int) -> Any:
        return self.values[self.codes[slot]]

    def of_slots(self, slots: np.ndarray, of: Callable[[Any], Any] | None = None) -> list[Any]:
        """The value of each of these slots, or what a function makes of it."""
        values = self.values if of is None else self.told(of)
        return [values[code] for code in self.codes[slots].tolist()]

    def grow(self, slots: int) -> None:
        self.codes = np.concatenate((self.codes, np.zeros(slots - len(self.codes), dtype=np.int32)))
        if len(self.values) > 2 * slots + SPARE:
            self.tidy()

    def tidy(self) -> None:
        """Let go of values that no slot has."""
        used, codes = np.unique(np.append(self.codes, 0), return_inverse=True)
        self.values = [self.values[code] for code in used.tolist()]
        self.codes = codes[:-1].astype(np.int32)
        self._code = {value: code for code, value in enumerate(self.values)}
        self._told, self._ranked, self._joined = {}, {}, {}

    def told(self, of: Callable[[Any], Any]) -> list[Any]:
        """What a function makes of each value; it is asked once of each."""
        kept = self._told.setdefault(of, [])
        kept.extend(map(of, self.values[len(kept) :]))
        return kept

    def where(self, of: Callable[[Any], Any], holds: Callable[[Any], bool]) -> np.ndarray:
        """Of each slot whether something holds of what `of` makes of its value."""
        there = self.told(of)
        return np.fromiter(map(holds, there), dtype=bool, count=len(there))[self.codes]

    def holding(self, of: Callable[[Any], str], word: str) -> np.ndarray:
        """Of each slot whether a word is in what `of` makes of its value."""
        return self._joined.setdefault(of, Joined()).holding(self.told(of), word)[self.codes]

    def equal(self, value: Hashable) -> np.ndarray:
        """Of each slot whether it has this value."""
        return self.codes == self._code.get(value, -1)

    def ranks(self, of: Callable[[Any], Any]) -> np.ndarray:
        """Of each slot a number, in the order of what `of` makes of its value; NaN where that is None."""
        return self._ranked.setdefault(of, Ranked()).ranks(self.told(of))[self.codes]

    def counted(self, slots: np.ndarray, most: int | None = None) -> list[tuple[Any, int, int]]:
        """(value, how many of the slots have it, which of them is the first) of each value that any has but None, or of
        the most frequent ones: these first, of equal ones the one that comes first."""
        codes = self.codes[slots]
        many = np.bincount(codes, minlength=len(self.values))
        many[0] = 0
        first = np.zeros(len(self.values), dtype=np.int64)
        first[codes[::-1]] = np.arange(len(codes))[::-1]
        some = np.flatnonzero(many)
        some = some[np.lexsort((first[some], -many[some]))][:most].tolist()
        return [(self.values[code], int(many[code]), int(first[code])) for code in some]


class Ranked:
    """Numbers in the order of keys. A few that come later get numbers between those of their neighbours."""

    def __init__(self) -> None:
        self._keys: list[Any] = []
        self._numbers: list[float] = []
        self._ranks = np.zeros(0)

    def ranks(self, keys: list[Any]) -> np.ndarray:
        done = len(self._ranks)
        if len(keys) > done:
            new = keys[done:]
            some = [self._between(key) for key in new] if done and len(new) <= FEW else [None]
            self._ranks = self._anew(keys) if None in some else np.append(self._ranks, some)
        return self._ranks

    def _anew(self, keys: list[Any]) -> np.ndarray:
        self._keys = sorted({key for key in keys if key is not None})
        self._numbers = [float(n) for n in range(len(self._keys))]
        number = dict(zip(self._keys, self._numbers, strict=True))
        return np.array([np.nan if key is None else number[key] for key in keys])

    def _between(self, key: Any) -> float | None:
        """None where there is no room."""
        if key is None:
            return np.nan
        at, most = bisect_left(self._keys, key), len(self._keys)
        if at < most and self._keys[at] == key:
            return self._numbers[at]
        low = self._numbers[at - 1] if at else (self._numbers[0] if most else 0.0) - 2.0
        high = self._numbers[at] if at < most else low + 2.0
        number = (low + high) / 2
        if not low < number < high:
            return None
        self._keys.insert(at, key)
        self._numbers.insert(at, number)
        return number
