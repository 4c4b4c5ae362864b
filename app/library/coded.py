"""A column of texts, or of what else runs have in common: each value is kept once, and of each run its number. What a
search asks of a value is asked once for all runs that have it.
"""

import contextlib
from bisect import bisect_left
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from app.library.joined import Joined

MANY = 10_000  # keys that are sorted elsewhere than in Python, where nothing else goes on meanwhile
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

    def keep(self, of: Callable[[Any], Any], values: list[Any], told: list[Any], made: "Ranked | Joined") -> None:
        """Sort, or look for words, by what was made of `told`, which `of` made of these values, unless others have
        their numbers by now."""
        if self.values[: len(values)] == values:
            self._told.setdefault(of, told)
            kept: dict[Any, Any] = self._ranked if isinstance(made, Ranked) else self._joined
            kept.setdefault(of, made)

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
        self.prepare(keys)
        return self._ranks

    def prepare(self, keys: list[Any]) -> None:
        """Give numbers to those that have none."""
        done = len(self._ranks)
        if len(keys) > done:
            new = keys[done:]
            found = [self._between(key) for key in new] if done and len(new) <= FEW else []
            some = [number for number in found if number is not None]
            self._ranks = self._anew(keys) if len(some) < len(new) else np.append(self._ranks, some)

    def _anew(self, keys: list[Any]) -> np.ndarray:
        order, first = _sorted(keys)
        self._keys = [keys[at] for at in order[first].tolist()]
        self._numbers = np.arange(len(self._keys), dtype=float).tolist()
        ranks = np.full(len(keys), np.nan)
        ranks[order] = np.cumsum(first) - 1.0
        return ranks

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


def _sorted(keys: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """(where those stand that are not None, in their order; of each of these whether it is the first of its kind)"""
    if len(keys) > MANY:
        import pyarrow as pa  # late: lists of few do without
        import pyarrow.compute as pc

        with contextlib.suppress(UnicodeEncodeError, pa.ArrowTypeError):  # half characters, and what is no text
            told = pa.array(keys, pa.large_string())  # bytes of UTF-8 stand in the order of their characters
            order = pc.sort_indices(told)[: len(keys) - told.null_count]
            there = told.take(order)
            others = pc.not_equal(there[1:], there[:-1]).to_numpy(zero_copy_only=False)
            return order.to_numpy().astype(np.int64), np.append(np.ones(min(len(order), 1), dtype=bool), others)
    order = sorted((at for at, key in enumerate(keys) if key is not None), key=keys.__getitem__)
    first = [not n or keys[order[n - 1]] != keys[at] for n, at in enumerate(order)]
    return np.array(order, dtype=np.int64), np.array(first, dtype=bool)
