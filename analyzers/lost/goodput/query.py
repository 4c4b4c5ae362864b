"""What is asked of goodput: by which rules, over which time, without which times, of which attempt."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from analyzers.intervals import Spans, spans, union
from analyzers.time.history import NS_PER_S
from errors import QuestionError

EXACT, LIBRARY = "exact", "ml-goodput"
EXPECTED = "ISO 8601, as 2026-01-05T00:30:00Z, or seconds since 1970"
_LATEST_S = 9_000_000_000  # year 2255: 64 bits of nanoseconds end in 2262


@dataclass(frozen=True)
class Query:
    """The options of the question, read. Times are ns since the epoch; None where not given.

    `window_s`: the last so many seconds up to `end_ns`, to `now_ns`, or to where the job ends.
    `exclude`: (start, end) pairs as given, those that end before they begin included.
    """

    now_ns: int | None = None
    start_ns: int | None = None
    end_ns: int | None = None
    window_s: float | None = None
    exclude: tuple[tuple[int, int], ...] = ()
    attempt: int | None = None

    @property
    def windowed(self) -> bool:
        return self.start_ns is not None or self.end_ns is not None or self.window_s is not None

    @property
    def excluded(self) -> Spans:
        """The excluded times, sorted and merged."""
        return union(spans([a for a, _ in self.exclude], [b for _, b in self.exclude]))

    def window(self, first_ns: int, last_ns: int) -> tuple[int, int]:
        """The time asked about, of a job from `first_ns` to `last_ns`. Raises QuestionError where it is empty."""
        end = next(t for t in (self.end_ns, self.now_ns if self.windowed else None, last_ns) if t is not None)
        start = first_ns if self.start_ns is None else self.start_ns
        if self.window_s is not None:
            start = end - round(self.window_s * NS_PER_S)
        if start >= end:
            raise QuestionError(f"a window from {said(start)} to {said(end)}", expected="a start before its end")
        return start, end

    @property
    def reversed(self) -> int:
        """How many excluded times end before they begin."""
        return sum(a >= b for a, b in self.exclude)

    @property
    def passed_over(self) -> str:
        """What a note says of those."""
        text = counted(self.reversed, "excluded time ends before it begins", "excluded times end before they begin")
        return f"{text}: passed over."


def query(options: Mapping[str, Any]) -> Query:
    """The question's options, read. Raises QuestionError for what is no time, no window, no attempt."""
    window_s, attempt = options.get("window_s"), options.get("attempt")
    if window_s is not None and not 0 < window_s < _LATEST_S:
        raise QuestionError(f"option window_s={window_s}", expected="a number of seconds above 0")
    if window_s is not None and options.get("start") is not None:
        raise QuestionError("options window_s and start", expected="one of the two: both say where the window begins")
    if attempt is not None and attempt < 0:
        raise QuestionError(f"option attempt={attempt}", expected="0 for the first start of the job, 1 for the next")
    now, start, end = (time_ns(options.get(n), n) for n in ("now", "start", "end"))
    if start is not None and end is not None and start >= end:
        raise QuestionError(f"a window from {said(start)} to {said(end)}", expected="a start before its end")
    return Query(now, start, end, window_s, _exclusions(options.get("exclude")), attempt)


def time_ns(text: str | None, option: str) -> int | None:
    """A time of day as ns since the epoch, to the nearest; without a zone it is UTC. None where nothing is given."""
    if text is None or not str(text).strip():
        return None
    text = str(text).strip()
    try:
        seconds = float(text)
    except ValueError:
        return _iso_ns(text, option)
    if not math.isfinite(seconds) or not 0 <= seconds < _LATEST_S:
        raise QuestionError(f"option {option}={text!r}", expected=EXPECTED)
    numerator, denominator = seconds.as_integer_ratio()
    return (2 * numerator * NS_PER_S + denominator) // (2 * denominator)


def _iso_ns(text: str, option: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise QuestionError(f"option {option}={text!r}", expected=EXPECTED) from None
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    whole = since.days * 86_400 + since.seconds
    if not 0 <= whole < _LATEST_S:
        raise QuestionError(f"option {option}={text!r}", expected=EXPECTED)
    return whole * NS_PER_S + since.microseconds * 1000


def _exclusions(text: str | None) -> tuple[tuple[int, int], ...]:
    out = []
    for pair in (p for p in (text or "").split(",") if p.strip()):
        start, slash, end = pair.partition("/")
        times = [time_ns(t, "exclude") for t in (start, end)]
        if not slash or None in times:
            raise QuestionError(f"option exclude={pair.strip()!r}", expected=f"START/END, each {EXPECTED}")
        out.append((times[0], times[1]))
    return tuple(out)


def said(ns: int) -> str:
    """A time of day as an error says it."""
    return str(np.datetime64(ns, "ns").astype("datetime64[s]")) + "Z"


def counted(count: int, one: str, many: str) -> str:
    """`1 time lies`, `3 times lie`: a number with words that fit it."""
    return f"{count:,} {one if count == 1 else many}"
