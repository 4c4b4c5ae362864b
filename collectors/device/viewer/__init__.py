"""What JAX and TensorFlow write of a profile for a viewer (`*.trace.json.gz`), read where the profile itself is lost.

The file is made of the profile: planes became processes, lines threads, statistics texts. It lacks what a viewer does
not show: programs, FLOPs (but for `model_flops`), steps' marks, asynchronous lines, the time of day, and every event
beyond the first million. Here it is turned back into an XSpace, which the reader of profiles reads.
"""

import re
import tempfile
from collections.abc import Iterator

from collectors.base import Item, Lost, Source
from errors import InputError

NAME = "viewer"
TITLE = "trace for a viewer"
HELP = (
    "Traces that JAX and TensorFlow write for a viewer (`<host>.trace.json.gz`): operations of devices and of host "
    "threads as a viewer shows them. Read only where no profile (`.xplane.pb`) lies beside it, which tells more."
)
MOST_EVENTS = 1_000_000
"""Events that the writer keeps, the earliest (`TF_PROFILER_TRACE_VIEWER_MAX_EVENTS`, unless that is set)."""
_PROCESS = re.compile(rb'"name"\s*:\s*"/(?:host:|device:[A-Za-z_]+:\d+)')
_OTHERS = re.compile(rb'"(?:schemaVersion|deviceProperties|distributedInfo|baseTimeNanoseconds)"|"cat"\s*:')


def sniff(source: Source) -> float:
    """0.9 for JSON whose trace events begin with processes that are called as planes of a profile are."""
    head = source.head.lstrip()
    if head[:1] != b"{" or b'"traceEvents"' not in head or b'"process_name"' not in head:
        return 0.0
    return 0.9 if _PROCESS.search(head) and not _OTHERS.search(head) else 0.0


def read(source: Source) -> Iterator[Item]:
    """The trace as rows, facts and named losses, in bounded memory. Raises InputError for one without events."""
    from collectors.device.viewer.space import Spaces
    from collectors.device.xplane import prepare, read_space

    prepare()
    with tempfile.TemporaryFile(prefix="chipledger-") as out:
        spaces = Spaces(source, out)
        parts = list(spaces.parts())
        if not parts:
            raise InputError(
                "a trace for a viewer without one event",
                where=source.name,
                expected="a profile",
                advice="Ingest the `.xplane.pb` of the capture, or profile again",
            )
        out.flush()
        lost = [*spaces.lost, *_lacks(spaces.events)]
        for item in read_space(source, out, lost, parts):
            if not (isinstance(item, Lost) and item.what == "the time of day"):  # told by `_lacks`
                yield item


def _lacks(events: int) -> Iterator[Lost]:
    yield Lost(
        "what a viewer does not show",
        "this is a trace for a viewer, made of a profile: it holds no programs, nothing of who met in collectives, "
        "no memory, no asynchronous lines and no time of day (times count from 0), and may hold a part of the events "
        "alone; ingest the `.xplane.pb` instead, where there is one",
    )
    if events >= MOST_EVENTS:
        yield Lost(
            "the events after the first million",
            f"it holds {events:,}, and a trace for a viewer holds no more than the earliest {MOST_EVENTS:,}",
        )
