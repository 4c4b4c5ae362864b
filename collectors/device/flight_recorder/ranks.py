"""Whose a dump is, and which ranks its groups have."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from typing import Any

_ENDINGS = re.compile(r"(?:\.(?:gz|pkl|pickle|json|bin|dump|trace|pt|txt|log))+$", re.IGNORECASE)
_RANK = re.compile(r"rank[_.=-]?(\d{1,9})(?!\d)", re.IGNORECASE)
_LAST = re.compile(r"(\d{1,9})$", re.ASCII)
_LISTED = re.compile(r"\d{1,9}(?:\s*,\s*\d{1,9})*", re.ASCII)
MOST_RANKS = 1_000_000  # of one group


def rank_told(name: str) -> int | None:
    """The rank that a file's name tells: behind `rank`, else the number that it ends in; None where there is none."""
    base = _ENDINGS.sub("", re.split(r"[/\\]", name)[-1])
    found = [*_RANK.finditer(base)]
    match = found[-1] if found else _LAST.search(base)
    return int(match[1]) if match else None


def listed(value: Any) -> tuple[int, ...] | None:
    """Ranks as the recorder lists them: "[0, 1]", or a list of numbers; None for anything else, and for none."""
    if isinstance(value, str):
        text = value.strip().removeprefix("[").removesuffix("]").strip()  # no pattern takes blanks at both its ends
        value = [int(word) for word in re.findall(r"\d+", text)] if _LISTED.fullmatch(text) else None
    if not isinstance(value, list | tuple) or not 0 < len(value) <= MOST_RANKS:
        return None
    if not {*map(type, value)} <= {int} or min(value) < 0 or max(value) >= 1 << 31 or len({*value}) < len(value):
        return None
    return tuple(value)


def whose(name: str, groups: Iterable[tuple[int, ...]]) -> int | None:
    """The rank that wrote a dump with these groups, each of which it is a member of.

    What the name tells counts where the groups allow it; where all of them share one rank alone, it is that.
    """
    told, among = rank_told(name), None
    for ranks in groups:
        among = {*ranks} if among is None else among & {*ranks}
    if among is None or told in among:
        return told
    return next(iter(among)) if len(among) == 1 else None


def paired(names: Iterable[str], numbers: Iterable[int], known: Mapping[int, str]) -> dict[int, str]:
    """Which of the rank's own numbers of groups is which group.

    `known`: those that an operation tells. Both count groups in the order in which they were made, so that between two
    that are known, as many of one kind as of the other are the same groups in order; where their numbers differ, or a
    name is no number, nothing is said of those between.
    """
    if len({*known.values()}) < len(known):
        return {}
    if not all(name.isascii() and name.isdigit() and len(name) < 19 for name in (*names, *known.values())):
        return dict(known)
    left, right = sorted({*numbers} | {*known}), sorted({int(n) for n in names} | {int(n) for n in known.values()})
    pairs = [(number, int(name)) for number, name in sorted(known.items())]
    if [name for _, name in pairs] != sorted(name for _, name in pairs):
        return dict(known)
    found, low, below = dict(known), -1, -1
    for number, name in [*pairs, (max([*left, 0]) + 1, max([*right, 0]) + 1)]:
        theirs = left[bisect_right(left, low) : bisect_left(left, number)]
        ours = right[bisect_right(right, below) : bisect_left(right, name)]
        if len(theirs) == len(ours):
            found |= {n: str(o) for n, o in zip(theirs, ours, strict=True)}
        low, below = number, name
    return found
