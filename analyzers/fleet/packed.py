"""What a run spent, packed as the numbers that columns are made of: those of very many runs are read at once.

    paths    of its accounts, a line each, in the order of its entries
    told     numbers of 64 bits: the head; then `chip_s` and `lot` of each entry; `lot`, `start`, `end` and amount of
             each piece; `start` and `end` of what was held; a number for each input

It follows from what was spent, to the last bit, and may be kept in its place.
"""

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from analyzers.fleet.columns import Lists, offsets
from analyzers.fleet.spent import Spent, heading_of

EVEN = ""  # the heading of what is spread evenly over the time held
FLAGS = {"useful": 1, "least": 2, "chips_known": 4, "evenly": 8}
_S = 1_000_000_000
_COUNTS = ("entries", "pieces", "held", "files")
_WHOLE, _REAL = (*_COUNTS, "lots", "flags", "from_ns", "to_ns"), ("whole", "usd", "flops")
_HEAD = np.dtype([*((name, "<i8") for name in _WHOLE), *((name, "<f8") for name in _REAL)])
_WORDS, _WORD = len(_WHOLE) + len(_REAL), 8
_LISTS: dict[str, dict[str, str]] = {
    "entries": {"chip_s": "f8", "lot": "i8"},
    "pieces": {"lot": "i8", "start": "i8", "end": "i8", "share": "f8"},
    "held": {"start": "i8", "end": "i8"},
    "files": {"file": "i8"},
}
_CODES = {"f8": "d", "i8": "q"}  # as `struct` calls them
_BEGINNING = struct.Struct(f"<{len(_COUNTS)}q")
_Items = Sequence[tuple[int | float, ...]]


class Packed(NamedTuple):
    paths: str
    told: bytes

    def whole(self) -> bool:
        """Whether it is as long as it says."""
        if len(self.told) < _HEAD.itemsize:
            return False
        entries, pieces, held, files = _BEGINNING.unpack_from(self.told)
        words = _WORDS + 2 * entries + 4 * pieces + 2 * held + files
        paths = self.paths.count("\n") + 1 if self.paths else 0
        return min(pieces, held, files) >= 0 and len(self.told) == words * _WORD and paths == entries


@dataclass(frozen=True, eq=False)
class Laid:
    """What some runs spent, a row each; see `Columns`. `of`: the head of each. The share of a piece is its amount."""

    of: np.ndarray
    paths: tuple[str, ...]
    entries: Lists
    pieces: Lists
    held: Lists
    files: Lists


def packed(spent: Spent | None) -> Packed:
    """`spent`: None of a run without a ledger."""
    if spent is None:
        return NOTHING
    lots: dict[str, int] = {}
    under = [heading_in(spent, e.path) if spent.held else None for e in spent.entries]
    entries = [
        (e.chip_s, -1 if heading is None else lots.setdefault(heading, len(lots)))
        for e, heading in zip(spent.entries, under, strict=True)
    ]
    pieces = [
        piece
        for heading, lot in lots.items()
        for piece in (_evenly(spent, lot) if heading == EVEN else _in_cells(spent, heading, lot))
    ]
    held, flags = spent.held, {"useful": spent.useful_told, "least": spent.useful_least}
    flags |= {"chips_known": spent.chips_known, "evenly": bool(held) and spent.cells is None}
    numbers = (len(lots), sum(FLAGS[name] for name, on in flags.items() if on))
    span = (min(a for a, _ in held), max(b for _, b in held)) if held else (0, 0)
    known = (spent.chip_s, *(np.nan if value is None else value for value in (spent.usd, spent.useful_flops)))
    lists: tuple[_Items, ...] = entries, pieces, held, [(number_of(file),) for file in spent.inputs]
    return Packed("\n".join(e.path for e in spent.entries), _bytes((*numbers, *span), known, lists))


def _bytes(numbers: tuple[int, ...], known: tuple[float, ...], lists: Sequence[_Items]) -> bytes:
    form, values = f"<{len(_WHOLE)}q{len(_REAL)}d", [*map(len, lists), *numbers, *known]
    for items, kinds in zip(lists, _LISTS.values(), strict=True):
        for at, kind in enumerate(kinds.values()):
            form += f"{len(items)}{_CODES[kind]}"
            values.extend(item[at] for item in items)
    return struct.pack(form, *values)


NOTHING = Packed("", _bytes((0, 0, 0, 0), (0.0, np.nan, np.nan), ((),) * len(_LISTS)))


def heading_in(spent: Spent, path: str) -> str:
    """Under which heading an account's time lies in the cells of its run; EVEN where these do not tell."""
    heading = heading_of(path)
    told = spent.cells is not None and any(spent.cells.of.get(heading, ()))
    return heading if told else EVEN


def _evenly(spent: Spent, lot: int) -> list[tuple[int, int, int, float]]:
    return [(lot, a, b, float(b - a)) for a, b in spent.held]


def _in_cells(spent: Spent, heading: str, lot: int) -> list[tuple[int, int, int, float]]:
    """The cells that hold any of it; the first and the last end with the run."""
    cells = spent.cells
    assert cells is not None
    width, first, last = cells.each_s * _S, spent.held[0][0], spent.held[-1][1]
    told = ((cells.start_s * _S + i * width, us) for i, us in enumerate(cells.of[heading]) if us > 0)
    return [(lot, max(at, first), min(at + width, last), float(us)) for at, us in told]


def number_of(text: str) -> int:
    """A number that tells a text from others, the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=_WORD).digest(), "little", signed=True)


def unpacked(some: Sequence[Packed]) -> Laid:
    words = np.frombuffer(b"".join(one.told for one in some), dtype="<i8")
    begins = offsets(np.array([len(one.told) // _WORD for one in some], dtype=np.int64))[:-1]
    of = words[begins[:, None] + np.arange(_WORDS)].view(_HEAD).reshape(-1)
    at, lists = begins + _WORDS, dict[str, Lists]()
    for name, kinds in _LISTS.items():
        lists[name] = _taken(words, at, of[name], kinds)
        at = at + len(kinds) * of[name]
    paths: dict[str, int] = {}
    texts = {one.paths: np.zeros(0, dtype=np.int32) for one in some}
    for text in filter(None, texts):
        texts[text] = np.array([paths.setdefault(p, len(paths)) for p in text.split("\n")], dtype=np.int32)
    lists["entries"].of["path"] = np.concatenate([np.zeros(0, dtype=np.int32), *(texts[one.paths] for one in some)])
    return Laid(of=of, paths=tuple(paths), **lists)


def _taken(words: np.ndarray, begins: np.ndarray, count: np.ndarray, kinds: dict[str, str]) -> Lists:
    """The lists that begin there, of so many items each, one column after the other."""
    at, step = offsets(count), np.repeat(count, count)
    first = np.repeat(begins - at[:-1], count) + np.arange(at[-1])
    return Lists(at, {name: words[first + n * step].view(f"<{kind}") for n, (name, kind) in enumerate(kinds.items())})
