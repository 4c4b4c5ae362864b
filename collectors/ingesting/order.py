"""In which order the files of a run are read.

A name is where somebody put a file. The order is that of the content: the first time that a file tells, else the first
step; names, numbers in them as numbers, decide where neither is told, and content where the names are equal too.
"""

import re

from collectors.base import Source
from collectors.reading.line_prefix import Clock, plain
from collectors.reading.textlog import Tally

_PREFIX = 80  # characters of a line in which its time stands
_LINES = 1_000  # of the head, in which the first time is looked for
_EPOCH = re.compile(rb'"\w*time\w*":\s*(1[4-9]\d{8})(\d{0,9})\b')  # seconds since 2014, and further digits of them
_DATE = re.compile(r'"\w*time\w*":\s*"([^"]{19,40})"', re.IGNORECASE)
_STEP = re.compile(rb"\b(?:(?:global_)?step|iteration)[\"']?\s*+(?:[:=]\s*+)?(\d{1,18})\b(?![.\d])", re.IGNORECASE)
_DIGITS = re.compile(r"(\d+)", re.ASCII)


def begins(source: Source) -> tuple[float, float]:
    """(first time in ns since the epoch, first step) that the head of a text file tells; infinite where it does not."""
    if b"\0" in source.head:
        return float("inf"), float("inf")
    step = _STEP.search(source.head)
    return _first_time(source), int(step[1]) if step else float("inf")


def _first_time(source: Source) -> float:
    if source.head.lstrip()[:1] in (b"{", b"[") or source.head.startswith(b":::"):
        return _first_json_time(source)
    clock = Clock(source, Tally())
    for line in source.head.decode("utf-8", "replace").splitlines()[:_LINES]:
        if (ns := clock.time_ns(plain(line)[:_PREFIX], 0)) is not None:
            return ns
    return float("inf")


def _first_json_time(source: Source) -> float:
    """The least of the times: exports of logs may begin with the newest."""
    clock, text = Clock(source, Tally()), source.head.decode("utf-8", "replace")
    written = (clock.time_ns(m[1], 0) for m in _DATE.finditer(text))
    counted = (int((m[1] + m[2]).ljust(19, b"0")) for m in _EPOCH.finditer(source.head))
    return min((ns for ns in (*written, *counted) if ns is not None), default=float("inf"))


def natural(name: str) -> tuple[tuple[str, int, str], ...]:
    """A name as it is sorted by: its numbers as numbers, however long."""
    parts = _DIGITS.split(name)
    numbers = [p.lstrip("0") for p in (*parts[1::2], "")]
    return tuple((text, len(n), n) for text, n in zip(parts[::2], numbers, strict=True))
