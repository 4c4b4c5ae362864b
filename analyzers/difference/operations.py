"""Operations of two runs held beside each other: which take more time of a step, which are gone, and which are new.

Operations of programs that were compiled are matched by what they are (`analyzers.program.matching`). Else by what a
trace says of them, from the surest to the likeliest, the time of all that share a key added: names without the numbers
that compilers and libraries give anew, with place in the model and shape; then without shape; then kind and place.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

NUMBERED = re.compile(r"(?:\d+[._])+")  # of a name from its end: from its beginning each number would be tried anew
BOTH, GONE, NEW = "both", "gone", "new"
MOST = 200
COLUMNS = ("op", "category", "scope", "shape", "framework_op")


@dataclass(frozen=True)
class OpChange:
    """Seconds of a step on one device. `status`: in both, gone (in A alone) or new (in B alone)."""

    name: str
    category: str
    a_s: float
    b_s: float
    status: str

    @property
    def change_s(self) -> float:
        return self.b_s - self.a_s

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "category": self.category, "a_s": self.a_s, "b_s": self.b_s} | {
            "change_s": self.change_s,
            "status": self.status,
        }


Key = Callable[[pd.DataFrame], pd.Series]


def _text(rows: pd.DataFrame, column: str) -> pd.Series:
    return rows[column].astype(object).where(rows[column].notna(), "").astype(str)


def plain(name: str) -> str:
    """`fusion.12` and `fusion.7` as `fusion`: numbers are given anew by every compilation."""
    numbers = NUMBERED.match(name[::-1])
    return name[: len(name) - numbers.end()] if numbers else name


def _whole(rows: pd.DataFrame) -> pd.Series:
    return _placed(rows) + "\0" + _text(rows, "shape")


def _placed(rows: pd.DataFrame) -> pd.Series:
    return _text(rows, "op").map(plain) + "\0" + _text(rows, "category") + "\0" + _place(rows)


def _kind(rows: pd.DataFrame) -> pd.Series:
    return _text(rows, "category") + "\0" + _place(rows)


def _place(rows: pd.DataFrame) -> pd.Series:
    scope = _text(rows, "scope")
    return scope.where(scope != "", _text(rows, "framework_op"))


KEYS: tuple[Key, ...] = (_whole, _placed, _kind)


def matched(a: pd.DataFrame, b: pd.DataFrame) -> tuple[OpChange, ...]:
    """The largest change first; rows: COLUMNS and `seconds` of a step on one device."""
    found = list(_rounds(a, b))
    return tuple(sorted(found, key=lambda c: -abs(c.change_s)))


def _rounds(a: pd.DataFrame, b: pd.DataFrame) -> Iterator[OpChange]:
    for key in KEYS:
        mine, theirs = key(a), key(b)
        shared = set(mine) & set(theirs)
        sums = b[theirs.isin(shared)].groupby(theirs[theirs.isin(shared)])["seconds"].sum()
        for name, rows in a[mine.isin(shared)].groupby(mine[mine.isin(shared)]):
            yield _change(rows, float(rows["seconds"].sum()), float(sums[name]), BOTH)
        a, b = a[~mine.isin(shared)], b[~theirs.isin(shared)]
    for rows, status in ((a, GONE), (b, NEW)):
        for _, alike in rows.groupby(_placed(rows)) if len(rows) else ():
            seconds = float(alike["seconds"].sum())
            yield _change(alike, *((seconds, 0.0) if status == GONE else (0.0, seconds)), status)


def _change(rows: pd.DataFrame, a_s: float, b_s: float, status: str) -> OpChange:
    """Named after the one that takes longest, with how many others there are."""
    longest = rows.iloc[int(rows["seconds"].to_numpy().argmax())]
    more = len(rows) - 1
    name = str(longest["op"]) + (f" and {more} alike" if more else "")
    return OpChange(name, str(longest["category"] or ""), a_s, b_s, status)


def of_programs(pairs: pd.DataFrame, a_s: Mapping[str, float], b_s: Mapping[str, float]) -> tuple[OpChange, ...]:
    """From the pairs of `analyzers.program.difference`; `a_s`, `b_s`: seconds of a step by operation, each entered with
    the first pair that names it."""
    left = dict(a_s), dict(b_s)
    found = []
    for row in pairs.to_dict("records"):
        mine, theirs = (side.pop(str(row[k]), 0.0) for side, k in zip(left, ("op_a", "op_b"), strict=True))
        if mine or theirs:
            status = GONE if pd.isna(row["op_b"]) else NEW if pd.isna(row["op_a"]) else BOTH
            name = row["op_b"] if status == NEW else row["op_a"]
            found.append(OpChange(str(name), str(row["category"] or ""), mine, theirs, status))
    return tuple(sorted(found, key=lambda c: -abs(c.change_s)))
