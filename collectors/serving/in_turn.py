"""Several servers behind one address: each scrape reaches the one that a load balancer, or a Service of Kubernetes,
takes just then.

A process that starts again never comes back. Where one answers again after another did, all of them answer in turn, and
what one counts says nothing of another: they are told apart by when each was started. Where no answer says that (of a
server of several processes, as SGLang's always is), tokens that fall and come back again and again say it, and each
answer is of the server that has counted most of those that had counted no more.

Scrapes of several that were polled by addresses of their own and lie in one file are told apart by `joined`.
"""

import contextlib
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf, isfinite
from typing import Protocol

import numpy as np

from collectors.base import HEAD_BYTES, Source
from collectors.reading.exposition import MOMENT, time_ns
from collectors.serving.joined import LATER_S, STARTED, Answer, joined
from errors import InputError

OFTEN, MOST = 3, 16  # times that tokens fall and come back; servers
TOLD = (
    "each is of one of several servers that answer in turn at one address: they are told apart by {}, and nothing is "
    "known of what one did between its answers. Poll each by its own address"
)
_LINE = re.compile(  # each of a fixed beginning: found at once
    rb"\n(?:(?:# scraped_at )?(?P<time>\d[^\n{}]{7,39}?)[ \t\r]*(?=\n)"
    rb"|" + STARTED.encode() + rb"[ \t]+(?P<start>\d[\d.eE+]*)"
    rb"|(?P<series>(?:vllm|sglang):generation_tokens(?:_total)?(?:\{[^\n]*\})?)[ \t]+(?P<tokens>\d[\d.eE+]*))"
)
_PIECE = 1 << 20


class InTurn(Protocol):
    """Servers in turn. `said`: how they are told apart, as a sentence. `together`: under one time each answers."""

    said: str
    together: bool

    def server(self, values: Mapping[str, float], at: int | None) -> str:
        """Which of them a scrape is of, as it is called: empty where the scrape does not tell. Asked of each scrape
        once, in their order."""
        ...


class ByStart:
    """Told apart by when each was started."""

    said, together = TOLD.format("when each was started"), False

    def server(self, values: Mapping[str, float], at: int | None) -> str:
        with contextlib.suppress(KeyError, ValueError, OverflowError, OSError):
            return f"started {datetime.fromtimestamp(round(values[STARTED], 2), UTC):%Y-%m-%d %H:%M:%S.%f}"[:-4]
        return ""


@dataclass
class ByCount:
    """Told apart by how many tokens each had generated. `series`: that counts them; `apart`: by how much the count of
    one may have grown, as more is another's; `last`: of each server."""

    series: str
    apart: float
    last: list[float] = field(default_factory=list[float])
    said, together = TOLD.format("how many tokens each had generated"), False

    def server(self, values: Mapping[str, float], at: int | None) -> str:
        count = values.get(self.series)
        if count is None or not isfinite(count):
            return ""
        most = self.apart if len(self.last) < MOST else inf
        return f"server {_entered(self.last, count, most) + 1}"


def in_turn(source: Source) -> InTurn | None:
    """How to tell the scrapes of a file apart that are of several servers; None: they are of one."""
    answers, series = _answers(source)
    if (found := joined(answers, series)) is not None:
        return found
    starts = [a.start for a in answers if a.start is not None]
    if starts:
        return ByStart() if returns(round(start, 2) for start in starts) else None
    between = apart([a.tokens for a in answers if a.tokens is not None])
    return None if between is None else ByCount(series, between)


def returns(starts: Iterable[float]) -> bool:
    """Whether one of these processes, each as when it was started, comes back after another."""
    now: float | None = None
    left = set[float]()
    for start in starts:
        if now is not None and abs(start - now) > LATER_S:
            if start in left:
                return True
            left.add(now)
        now = start
    return False


def apart(counts: Sequence[float]) -> float | None:
    """Half of what a counter usually falls by, where it falls and comes back so as several do that are asked in turn:
    most times in one step, where one that starts again comes back step by step; and as few counters, each of which
    grows by less than that, where each start would be one more. None where it does not."""
    step = np.diff(np.asarray(counts, dtype=float))
    falls = np.flatnonzero(step < 0)
    if len(falls) <= OFTEN:
        return None
    rise, fall = np.maximum.reduceat(step, falls)[:-1], -step[falls[:-1]]  # from each fall to before the next
    back = (rise >= fall / 2)[rise > 0]
    if back.sum() < max(OFTEN, len(back) / 2):
        return None
    last, grew = list[float](), list[float]()
    for count in counts:
        before = [*last]
        at = _entered(last, count)
        if len(last) > min(MOST, len(falls) / 3 + 1):
            return None
        grew += [count - before[at]] if at < len(before) else []
    between = float(np.median(fall)) / 2
    return between if np.quantile(grew, 0.9) <= between else None


def _entered(last: list[float], count: float, most: float = inf) -> int:
    """Which of several counters a count is of, the highest that it is not below, or above by more than `most`, else one
    more; it is entered there."""
    fits = [n for n, value in enumerate(last) if value <= count <= value + most]
    at = max(fits, key=last.__getitem__, default=len(last))
    last[at : at + 1] = [count]
    return at


def _answers(source: Source) -> tuple[list[Answer], str]:
    """What each scrape of a file tells of these, and the series that counts tokens. A search of the bytes: what cannot
    be read is left to the reading to tell."""
    found, now, series, began = list[Answer](), Answer(None, None, None), "", False
    for match in _matches(source):
        if match["time"]:
            text = match["time"].decode("utf-8", "replace")
            if match[0].startswith(b"\n#") or MOMENT.fullmatch(text):
                found += [now] if began else []
                now, began = Answer(time_ns(text), None, None), False
            continue
        name = match["series"].decode("utf-8", "replace") if match["series"] else STARTED
        series = series or (name if name != STARTED else "")
        told = "start" if name == STARTED else "tokens"
        if name not in (STARTED, series):
            continue
        with contextlib.suppress(ValueError):
            value = float(match[told])
            if isfinite(value):
                if getattr(now, told) is not None:  # the next under the same time
                    found.append(now)
                    now = Answer(now.at, None, None)
                now, began = now._replace(**{told: value}), True
    return found + ([now] if began else []), series


def _matches(source: Source) -> "Iterator[re.Match[bytes]]":
    before = b"\n"  # of the line before
    with contextlib.suppress(OSError, EOFError, zlib.error, InputError), source.open() as f:
        while piece := f.read(_PIECE):
            text, newline, before = (before + piece).rpartition(b"\n")
            yield from _LINE.finditer(text + newline)
            before = b"\n" + before[:HEAD_BYTES]  # of a line without end
