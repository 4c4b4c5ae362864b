"""All events of a run put down in the order in which they are read, with where those of each lane lie.

A run may hold more events than memory: what is kept here of each stretch of one lane's events is a few numbers, and the
events are columns that grow (`columns.py`).
"""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.timeline.columns import Columns, Ranges
from analyzers.timeline.lanes import NONE, Lane, Part
from analyzers.timeline.progress import READING, tell
from analyzers.timeline.pyramid import Ints
from errors import QuestionError

TOLD = ("lane", "turn", "at", "size", "base_ns", "per_ns", "dated", "begin", "end", "capture", "together")
MOST_LANES = 100_000  # a browser is told all of them
OPTIONAL = ("number", "event", "op")  # columns that hold NONE where a part has none


@dataclass(frozen=True, kw_only=True)
class PutDown:
    """What of events that were put down is no column. `names`: what any event is called; `ranges`: the least and the
    most of optional columns; `told`: of each stretch the number of its lane in `lanes`, what `Part` says of it, where
    its events lie (`at`, `size`), and the least and the most of its times (`begin`, `end`)."""

    lanes: tuple[Lane, ...]
    names: tuple[str, ...]
    ranges: dict[str, tuple[int, int]]
    told: dict[str, Ints]
    backwards: int
    traced: int


class Gathered:
    """Stretches of events as they are put down. `names`, `lanes`: numbers of them as they were met."""

    def __init__(self, columns: Columns):
        self.columns = columns
        self.lanes: dict[Lane, int] = {}
        self.names: dict[str, int] = {}
        self.backwards = self.traced = 0
        self.ranges: dict[str, tuple[int, int]] = {}  # the least and the most of optional columns
        self._told = {name: array("q") for name in TOLD}
        self._words: tuple[NDArray[np.object_] | None, NDArray[np.int32]] = (None, np.zeros(0, np.int32))

    def add(self, part: Part) -> None:
        if not len(part.start):
            return
        at, end = self.columns.length("start"), part.start + np.maximum(part.dur, 0)
        told = {
            "lane": self.lanes.setdefault(part.lane, len(self.lanes)),
            "turn": part.turn,
            "at": at,
            "size": len(part.start),
            "base_ns": part.base_ns,
            "per_ns": part.per_ns,
            "dated": int(part.dated),
            "begin": int(part.start.min()),
            "end": int(end.max()),
            "capture": part.capture,
            "together": int(part.together),
        }
        for name, value in told.items():
            self._told[name].append(value)
        few_enough(len(self.lanes))
        self.backwards += int((part.dur < 0).sum())
        self.traced += len(part.start) if part.event is not None else 0
        self._see("capture", part.capture, part.capture)
        for name, column in (("start", part.start), ("end", end), ("code", part.code), ("name", self._numbered(part))):
            self.columns.add(name, column)
        self.columns.add("kind", part.code if part.kind is None else part.kind)
        for name in OPTIONAL:
            values: Ints | None = getattr(part, name)
            self._see(name, *((NONE, NONE) if values is None else (int(values.min()), int(values.max()))))
            self.columns.add(name, np.full(len(end), NONE) if values is None else values.astype(np.int64))

    def _see(self, name: str, low: int, high: int) -> None:
        before = self.ranges.get(name, (low, high))
        self.ranges[name] = min(before[0], low), max(before[1], high)

    def _numbered(self, part: Part) -> NDArray[np.int32]:
        """The number of each event's name. Words are looked up once, for whom the next part shares them with."""
        if self._words[0] is not part.words:
            self._words = part.words, np.full(len(part.words), NONE, np.int32)
        numbers = self._words[1]
        fresh = part.said[numbers[part.said] < 0]
        if len(fresh):
            import pandas as pd

            for word in pd.unique(fresh):  # in the order in which they come
                numbers[word] = self.names.setdefault(str(part.words[word]), len(self.names))
        return numbers[part.said]

    def put_down(self) -> PutDown:
        return PutDown(
            lanes=tuple(self.lanes),
            names=tuple(self.names),
            ranges=self.ranges,
            told={name: np.array(values, np.int64) for name, values in self._told.items()},
            backwards=self.backwards,
            traced=self.traced,
        )


def gathered(parts: Iterable[Part], columns: Columns, whole: int = 0) -> PutDown:
    """All parts, put down. `whole`: about how many events they are; 0: they are some of a timeline's, and how far that
    is, is told elsewhere."""
    found = Gathered(columns)
    if whole:
        tell(READING, 0, whole)
    for part in parts:
        found.add(part)
        if whole:
            tell(READING, columns.length("start"), whole)
    return found.put_down()


def few_enough(lanes: int) -> None:
    """Raises QuestionError for more lanes than a timeline may have."""
    if lanes > MOST_LANES:
        raise QuestionError(
            f"more than {MOST_LANES:,} lanes of hosts, devices and their threads",
            expected="a run of at most so many",
            advice="Ingest the profiles of fewer hosts as one run.",
        )


def merged(at: Ints, size: Ints) -> Ranges:
    """Stretches as ranges, those that follow one another as one."""
    opens = np.flatnonzero(np.append(True, at[1:] != at[:-1] + size[:-1]))
    ends = np.append(opens[1:], len(at)) - 1
    return list(zip(at[opens].tolist(), (at[ends] + size[ends]).tolist(), strict=True))


def chunks(sizes: Ints, most: int) -> Iterator[tuple[int, int]]:
    """From which to which lane are worked on together: at most `most` events, or one lane."""
    begin = held = 0
    for n, size in enumerate(sizes.tolist()):
        if held and held + size > most:
            yield begin, n
            begin, held = n, 0
        held += size
    if begin < len(sizes):
        yield begin, len(sizes)
