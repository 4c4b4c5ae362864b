"""A trace for a viewer as XSpaces, piece by piece: what its writer made of a profile, turned back.

    process  a plane, by its name          name, args.long_name  an event's display name and its name
    thread   a line, by its name           ts, dur               us since the profile's start
    args     statistics, all of them text: those of whole numbers become such again

The writer gives an event of no length one of a millionth of a us; it is none again here. What it leaves out and can be
told is put back: that an event with a `step_num` is a step, and FLOPs, which are `model_flops` where both are known.
"""

import re
from collections.abc import Iterator
from typing import Any, BinaryIO, TypeGuard

from collectors.base import Lost, Source
from collectors.device.viewer.events import trace_events
from collectors.reading.textlog import Tally

_PART_BYTES = 1 << 25  # of events in memory at a time
_NAMES_TAKE = 4  # bytes in memory for each byte of a name: entry, key, text
_MOST_NAMES = 1 << 16  # of processes and threads; a file with more is no profile
_MAX_TEXT = 1 << 16  # characters of a name or an argument that are kept
_MAX_PS = 1 << 53
_NO_LENGTH_PS = 1  # what the writer makes of an event of no length
_WHOLE = re.compile(r"-?\d{1,19}$", re.ASCII)
_TEXTS = frozenset(
    ("hlo_op", "hlo_module", "tf_op", "name", "source", "hlo_category", "long_name", "deduplicated_name")
)
_OF_OPERATION = frozenset(  # statistics that a TPU's operation has once, not each of its runs
    ("hlo_category", "model_flops", "flops", "bytes_accessed", "raw_bytes_accessed", "shape_with_layout", "source")
    + ("source_stack", "tf_op", "deduplicated_name", "program_id", "symbol_id")
)
_PLANE = re.compile(r"^(/(?:device|host):[^ ]*)")


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, body: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(body)) + body


def _text(value: str) -> bytes:
    return value[:_MAX_TEXT].encode("utf-8", "replace")


class _Names:
    """Numbers for names of one kind in a part, and the entries that define them."""

    def __init__(self, field: int):
        self._field = field
        self.numbers: dict[Any, int] = {}
        self.entries = bytearray()

    def of(self, key: Any, rest: bytes) -> int:
        """The number of `key`; `rest`: its definition beside the number."""
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = len(self.numbers) + 1
            value = b"\x08" + _varint(number) + rest
            self.entries += _field(self._field, b"\x08" + _varint(number) + _field(2, value))
        return number


class _Plane:
    """A process in the making: events by thread, and the names that they use."""

    def __init__(self) -> None:
        self.lines: dict[int, bytearray] = {}
        self.events, self.stats = _Names(4), _Names(5)
        self._stats: dict[tuple[str, str], bytes] = {}
        self._texts = 0  # bytes of `_stats`

    @property
    def size(self) -> int:
        """Bytes of names so far."""
        return len(self.events.entries) + len(self.stats.entries) + self._texts

    def stat(self, name: str, value: str) -> bytes:
        """An argument as a statistic."""
        found = self._stats.get((name, value))
        if found is None:
            number = self.stats.of(name, _field(2, _text(name)))
            body = b"\x08" + _varint(number)
            if _WHOLE.match(value) and name not in _TEXTS and -(1 << 63) <= int(value) < 1 << 63:
                body += b"\x20" + _varint(int(value))
            else:
                body += _field(5, _text(value))
            found = self._stats[name, value] = body
            self._texts += 100 + len(body)
        return found


class Spaces:
    """Reads a trace, and writes spaces to `out`. `events`: how many it holds; `lost`: what could not be read."""

    def __init__(self, source: Source, out: BinaryIO):
        self._source, self._out = source, out
        self._tally = Tally()
        self._planes: dict[int, _Plane] = {}
        self._names: dict[tuple[int, int | None], str] = {}
        self._named = False  # whether names were looked for in the whole file
        self._held = self._done = 0
        self.events = 0

    @property
    def lost(self) -> list[Lost]:
        return [*self._tally.lost()]

    def parts(self) -> Iterator[tuple[int, int]]:
        """Where each space lies in `out`."""
        with self._source.open() as stream:
            for event in trace_events(stream, self._tally):
                if event.get("ph") == "M":
                    self._name(event)
                elif event.get("ph") == "X":
                    self._enter(event)
                elif event:  # one without anything ends the list
                    self._tally.add("events", "neither a name nor a stretch of time")
                if self._held > _PART_BYTES:
                    yield self._written()
        if self._held:
            yield self._written()

    def _name(self, event: dict[str, Any]) -> None:
        pid, tid, args = event.get("pid"), event.get("tid"), event.get("args")
        name = args.get("name") if isinstance(args, dict) else None
        if not isinstance(name, str) or not _number(pid) or len(self._names) >= _MOST_NAMES:
            return
        if event.get("name") == "process_name":
            found = _PLANE.match(name)
            self._names.setdefault((pid, None), found[1] if found else name)
        elif event.get("name") == "thread_name" and _number(tid):
            self._names.setdefault((pid, tid), name)

    def _enter(self, event: dict[str, Any]) -> None:
        pid, tid, name = event.get("pid"), event.get("tid"), event.get("name")
        start, dur = _ps(event.get("ts")), _ps(event.get("dur", 0))
        if not (_number(pid) and _number(tid) and isinstance(name, str)) or start is None or dur is None or dur < 0:
            self._tally.add("events", "their thread, name or time is damaged")
            return
        if (pid, None) not in self._names or (pid, tid) not in self._names:
            self._look_for_names()
        if self._names.get((pid, None)) is None:
            self._tally.add("events", "their process has no name")
            return
        plane = self._planes.setdefault(pid, _Plane())
        args, named = event.get("args"), plane.size
        body = self._event(plane, self._names[pid, None], name, args if isinstance(args, dict) else {})
        if start:
            body += b"\x10" + _varint(start)
        if dur > _NO_LENGTH_PS:
            body += b"\x18" + _varint(dur)
        line = plane.lines.setdefault(tid, bytearray())
        line += _field(4, body)
        self._held += len(body) + _NAMES_TAKE * (plane.size - named)
        self.events += 1

    def _look_for_names(self) -> None:
        """Looks through the whole file, once, where names stand behind what they are of."""
        if self._named:
            return
        self._named = True
        with self._source.open() as stream:
            for event in trace_events(stream, Tally()):
                if event.get("ph") == "M":
                    self._name(event)

    def _event(self, plane: _Plane, process: str, name: str, args: dict[str, Any]) -> bytes:
        """An event but for its time."""
        told = {key: value for key, value in args.items() if isinstance(value, str) and key != "long_name"}
        mine: dict[str, str] = {}
        if process.startswith("/device:") and not process.startswith("/device:GPU"):
            mine = {key: told.pop(key) for key in [*told] if key in _OF_OPERATION}
            if "flops" not in mine and "model_flops" in mine:
                mine["flops"] = mine["model_flops"]
        elif "step_num" in told:
            told.setdefault("_r", "1")
        long_name = args.get("long_name")
        long_name = long_name if isinstance(long_name, str) else None
        key = (name, long_name, *mine.items())
        number = plane.events.numbers.get(key)
        if number is None:
            rest = _field(2, _text(long_name or name)) + (_field(4, _text(name)) if long_name else b"")
            rest += b"".join(_field(5, plane.stat(*item)) for item in mine.items())
            number = plane.events.of(key, rest)
        return b"\x08" + _varint(number) + b"".join(_field(4, plane.stat(*item)) for item in told.items())

    def _written(self) -> tuple[int, int]:
        """Writes what is held as a space; where it lies."""
        start = self._done
        for pid, plane in self._planes.items():
            body = bytearray(_field(2, _text(self._names.get((pid, None), ""))))
            for tid, events in plane.lines.items():
                name = self._names.get((pid, tid), f"thread {tid}")
                body += _field(3, b"\x08" + _varint(tid) + _field(2, _text(name)) + events)
            body += plane.events.entries + plane.stats.entries
            self._done += self._out.write(_field(1, bytes(body)))
        self._planes, self._held = {}, 0
        return start, self._done


def _number(value: Any) -> TypeGuard[int]:
    return type(value) is int and -(1 << 63) <= value < 1 << 64


def _ps(value: Any) -> int | None:
    """Microseconds as whole picoseconds; None for what is no time of a profile."""
    if type(value) not in (int, float) or not -_MAX_PS < value * 1_000_000 < _MAX_PS:
        return None
    return round(value * 1_000_000)
