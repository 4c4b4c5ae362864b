"""The console of a job that W&B kept beside its metrics, read by whatever reads a log of that job's framework.

W&B keeps what a process wrote to standard output and to standard error as it was written: parts of lines, each with its
time. They become lines as `kubectl logs --timestamps` prints them, each with the time at which it was begun; what a
progress bar drew, one anew on the same line after the other, becomes a line each.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import BinaryIO

from collectors import ANY_LOG, TEXT_LOGS, collector
from collectors.base import LINE_LIMIT_BYTES, Item, Lost, Source
from collectors.reading.textlog import Tally
from errors import InputError

SURE = 0.5  # as of any file
DEEP_BYTES = 1 << 24  # of a console that are looked at to tell whose it is
CARRIED = ("nvrx",)  # its lines stand in the logs of other programs too
LONGEST = LINE_LIMIT_BYTES >> 6  # bytes of a line
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class ConsoleLines(Source):
    """`path` is the file of the run, `lines` that with its console. Offsets are those in `lines`."""

    lines: Path = Path()
    head_bytes = DEEP_BYTES

    @property
    def content(self) -> Path:
        return self.lines


class _Stream:
    """The line that a stream is at: its parts, its bytes, when it was begun, and whether a `\\r` stands before it."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.size = 0
        self.begun_ns: int | None = None
        self.drawn = False


class Console:
    """Writes lines to `out`: `add` what was written, `close` at the end."""

    def __init__(self, out: BinaryIO, tally: Tally):
        self._out, self._tally = out, tally
        self._streams: dict[int, _Stream] = {}
        self.lines = 0

    def add(self, stream: int, ts_ns: int | None, text: str) -> None:
        """What was written to a stream (0 is standard error, 1 standard output) at this time."""
        stream &= 1
        for number, other in self._streams.items():
            if number != stream and other.drawn:
                self._end(other)  # a bar stands there whole: what the other stream prints comes behind it
        here = self._streams.setdefault(stream, _Stream())
        pieces = text.replace("\r\n", "\n").split("\n")
        for n, line in enumerate(pieces):
            for m, piece in enumerate(line.split("\r")):
                if m:
                    self._end(here)
                    here.drawn = True
                self._go_on(here, piece, ts_ns)
            if n < len(pieces) - 1:
                self._end(here)
                here.drawn = False

    def close(self) -> None:
        for stream in self._streams.values():
            self._end(stream)

    def _go_on(self, stream: _Stream, piece: str, ts_ns: int | None) -> None:
        if not piece:
            return
        if not stream.parts:
            stream.begun_ns = ts_ns
        if stream.size + len(piece) > LONGEST:
            self._tally.add("characters of the console", f"a line has more than {LONGEST:,}", count=len(piece))
            return
        stream.parts.append(piece)
        stream.size += len(piece)

    def _end(self, stream: _Stream) -> None:
        line = "".join(stream.parts).replace("\0", "")
        stream.parts, stream.size = [], 0
        if line.strip():
            self._out.write(f"{_stamp(stream.begun_ns)}{line}\n".encode("utf-8", "replace"))
            self.lines += 1


def _stamp(ts_ns: int | None) -> str:
    """A time as it stands before a line; nothing of none."""
    if ts_ns is None:
        return ""
    seconds, rest = divmod(ts_ns, 10**9)
    try:
        return f"{_EPOCH + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z "
    except OverflowError:
        return ""


def told(lines: ConsoleLines) -> Iterator[Item]:
    """What the console tells, by the collector that knows it."""
    reader = _reader(lines)
    if reader is None:
        return
    try:
        yield from reader.read(lines)
    except InputError as e:
        if reader.NAME != ANY_LOG:
            yield Lost("the console", f"read as {reader.TITLE}: {e.what}")


def _reader(lines: ConsoleLines) -> ModuleType | None:
    """The collector that is surest; the program's own counts before what others write into its output."""
    scores = {name: collector(name).sniff(lines) for name in TEXT_LOGS}
    own = {name: score for name, score in scores.items() if score >= SURE and name not in CARRIED} or scores
    best = max(own, key=lambda name: own[name])
    if own[best] >= SURE:
        return collector(best)
    any_log = collector(ANY_LOG)
    named = ConsoleLines(lines.path, f"{lines.name}.log", lines=lines.lines)
    return any_log if any_log.sniff(named) >= SURE else None
