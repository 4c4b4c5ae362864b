"""Scrapes of several servers in one file that tells when each was made: of each pod under one time, in a loop, or a
file of each, joined by `cat`, so that times go back.

Answers under one time are of several servers where each tells another start of its process; where none tells it, where
as many come under each time, each in its place, and tokens fall from one to the next and not in one place. What comes
behind a time that goes back is of another server where it overlaps with what came before, unless it tells of the same
process, or of the same counts at the same times, or counts on where a clock was set back.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import inf
from typing import NamedTuple

STARTED = "process_start_time_seconds"
LATER_S = 1.0  # the same process may tell its start a little differently
GOES_ON = 2  # times the most that one counts between two answers: behind a clock that was set back it goes on there
MOST_PARTS = 64  # of a file of which times go back: more are no files of servers, but scrapes in no order
JOINED = (
    "each is of one of several servers whose scrapes lie in one file: they are told apart by {}. A file for each, or a "
    "label such as `pod`, says it for sure"
)


class Answer(NamedTuple):
    """One scrape: its time, when its process was started (s), tokens that it had generated; None where not told."""

    at: int | None
    start: float | None
    tokens: float | None


@dataclass
class Joined:
    """`places`: servers of the answers of a time, start and count of `series`, in their order. `together`: several
    answers come under one time. `said`: how the servers are told apart, as a sentence."""

    places: dict[Answer, deque[str]]
    series: str
    together: bool
    said: str

    def server(self, values: Mapping[str, float], at: int | None) -> str:
        """Which of them a scrape is of; empty where that is not known. Asked of each scrape once, in their order."""
        found = self.places.get(Answer(at, values.get(STARTED), values.get(self.series)))
        if not found:
            return ""
        return found.popleft() if len(found) > 1 else found[0]


def joined(answers: Sequence[Answer], series: str) -> Joined | None:
    """How to tell the scrapes of a file apart that are of several servers; None where nothing says that they are."""
    times = [a.at for a in answers if a.at is not None]
    if len(times) < max(len(answers), 2):
        return None
    steps = [b - a for a, b in pairwise(times)]
    if min(steps) >= 0:
        servers, how = _together(answers), "what came under one time"
    elif 0 in steps:
        return None  # files of several servers each
    else:
        servers, how = _parts(answers), "their order and times, which go back where the next begins"
    if servers is None:
        return None
    places: dict[Answer, deque[str]] = {}
    for answer, server in zip(answers, servers, strict=True):
        places.setdefault(answer, deque()).append(f"server {server + 1}")
    return Joined(places, series, 0 in steps, JOINED.format(how))


def _together(answers: Sequence[Answer]) -> list[int] | None:
    """The server of each answer by its place under its time, or its start; None where they are of one."""
    groups = [list(g) for _, g in groupby(answers, key=lambda a: a.at)]
    each = len(groups[0])
    as_many = each > 1 and all(len(g) == each for g in groups[:-1]) and len(groups[-1]) <= each  # it may be cut off
    if all(a.start is not None for a in answers):
        starts = (sorted(map(_start, g)) for g in groups if len(g) > 1)
        gaps = [b - a for g in starts for a, b in pairwise(g)]
        if not gaps or min(gaps) <= LATER_S:
            return None
        if not as_many:  # one did not answer
            number: dict[float, int] = {}
            return [number.setdefault(round(_start(a), 2), len(number)) for a in answers]
    elif not as_many or _falls(answers) <= sum(_falls([g[n] for g in groups if n < len(g)]) for n in range(each)):
        return None
    return [n for g in groups for n in range(len(g))]


def _start(answer: Answer) -> float:
    return answer.start or 0.0


def _falls(answers: Sequence[Answer]) -> int:
    counts = [a.tokens for a in answers if a.tokens is not None]
    return sum(b < a for a, b in pairwise(counts))


def _parts(answers: Sequence[Answer]) -> list[int] | None:
    """The server of each answer by the part of the file that it lies in; None where all are of one."""
    cuts = [n for n, (a, b) in enumerate(pairwise(answers), 1) if _at(b) < _at(a)]
    if len(cuts) >= MOST_PARTS:
        return None
    parts = [answers[a:b] for a, b in pairwise([0, *cuts, len(answers)])]
    chains: list[list[Sequence[Answer]]] = []
    servers: list[int] = []
    for part in parts:
        fits = [n for n, chain in enumerate(chains) if all(_of_one(before, part) for before in chain)]
        at = max(fits, key=lambda n: _nearness(chains[n], part), default=len(chains))
        chains[at : at + 1] = [[*(chains[at] if at < len(chains) else []), part]]
        servers += [at] * len(part)
    return servers if len(chains) > 1 else None


def _at(answer: Answer) -> int:
    return answer.at or 0


def _nearness(chain: Sequence[Sequence[Answer]], part: Sequence[Answer]) -> tuple[bool, float]:
    """Of two servers that a part may be of, the one with a process of it; else that which counts least in between."""
    pairs = [sorted((before, part), key=lambda p: _at(p[0])) for before in chain]
    counts = [(first[-1].tokens, second[0].tokens) for first, second in pairs]
    grew = [b - a for a, b in counts if a is not None and b is not None and b >= a]
    return any(_starts(p) & _starts(part) for p in chain), -min(grew, default=inf)


def _starts(part: Sequence[Answer]) -> set[float]:
    return {round(a.start, 2) for a in part if a.start is not None}


def _of_one(before: Sequence[Answer], after: Sequence[Answer]) -> bool:
    """Whether two parts of a file may be of one server."""
    first, second = sorted((before, after), key=lambda part: _at(part[0]))
    shared = _at(first[-1]) - _at(second[0])
    starts = _starts(first), _starts(second)
    if all(starts):
        return bool(starts[0] & starts[1]) or (shared < 0 and min(starts[1]) >= _at(first[-1]) / 1e9)
    if shared <= 0:
        return True
    told = {a.at: a.tokens for a in before}
    both = [(told[a.at], a.tokens) for a in after if a.at in told]
    if len({count for _, count in both}) > 1 and all(a == b for a, b in both):
        return True
    counts = before[-1].tokens, after[0].tokens
    if None in counts:
        return False
    if _falls(sorted((*before, *after), key=_at)) == 0:  # two captures of it
        return True
    lasts = min(_at(part[-1]) - _at(part[0]) for part in (before, after))
    ahead = (counts[1] or 0.0) - (counts[0] or 0.0)
    return ahead >= 0 and (2 * shared < lasts or ahead <= GOES_ON * max(_largest_step(before), _largest_step(after)))


def _largest_step(answers: Sequence[Answer]) -> float:
    counts = [a.tokens for a in answers if a.tokens is not None]
    return max((b - a for a, b in pairwise(counts)), default=0.0)
