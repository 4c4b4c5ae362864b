"""Several servers behind one address: each scrape reaches the one that a load balancer, or a Service of Kubernetes,
takes just then.

A process that starts again never comes back. Where one answers again after another did, all of them answer in turn, and
what one counts says nothing of another: they are told apart by when each was started.
"""

import contextlib
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from collectors.base import HEAD_BYTES, Source
from errors import InputError

STARTED = "process_start_time_seconds"
LATER_S = 1.0  # the same process may tell its start a little differently
TOLD = (
    "each is of one of several servers that answer in turn at one address: they are told apart by when each was "
    "started, and nothing is known of what one did between its answers. Poll each by its own address"
)
_LINE = re.compile(rb"\n" + STARTED.encode() + rb"[ \t]+(\d[\d.eE+]*)")  # of a fixed beginning: found at once
_PIECE = 1 << 20


def in_turn(source: Source) -> bool:
    """Whether the scrapes of a file are of several servers in turn."""
    return returns(_starts(source))


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


def server(values: Mapping[str, float]) -> str:
    """Which of them a scrape is of, as it is called: empty where the scrape does not tell."""
    with contextlib.suppress(KeyError, ValueError, OverflowError, OSError):
        return f"started {datetime.fromtimestamp(round(values[STARTED], 2), UTC):%Y-%m-%d %H:%M:%S.%f}"[:-4]
    return ""


def _starts(source: Source) -> Iterator[float]:
    """When the process of each scrape was started, s since the epoch. A search of the bytes: what cannot be read is
    left to the reading to tell."""
    before = b"\n"  # of the line before
    with contextlib.suppress(OSError, EOFError, zlib.error, InputError), source.open() as f:
        while piece := f.read(_PIECE):
            text, newline, before = (before + piece).rpartition(b"\n")
            for match in _LINE.finditer(text + newline):
                with contextlib.suppress(ValueError):
                    yield round(float(match[1]), 2)
            before = b"\n" + before[:HEAD_BYTES]  # of a line without end
