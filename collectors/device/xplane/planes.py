"""Where the planes of a trace lie, and their metadata: names of events and stats, stats of metadata and of planes.

A plane writes its lines before the names they refer to, so a first walk notes the places and a second reads them.
"""

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from collectors.base import Lost
from collectors.device.xplane.clock import DURATION, OFFSET
from collectors.device.xplane.lines import Plane, plane_of
from collectors.device.xplane.tables import (
    COPY,
    DEVICE,
    HLO_MODULE,
    HLO_OP,
    OWN_DURATION,
    OWN_OFFSET,
    PROGRAM,
    ROOT,
    STEP,
    Lookup,
)
from collectors.device.xplane.wire import BYTES, Fields, Window
from collectors.reading.protobuf import message_types

XPLANE = message_types(
    "chipledger.xplane",
    """
    Stat: int64 metadata_id=1, double? double_value=2, uint64? uint64_value=3, int64? int64_value=4, \
          bytes? str_value=5, bytes? bytes_value=6, uint64? ref_value=7
    EventMetadata: int64 id=1, bytes name=2, bytes display_name=4, Stat* stats=5
    EventEntry: int64 key=1, EventMetadata value=2
    """.replace("\\\n", " "),
)
_NAME, _LINE, _EVENT_METADATA, _STAT_METADATA, _STAT = 2, 3, 4, 5, 6
STAT_NAME = 2  # field of XStatMetadata, and of XEventMetadata
_MAX_NAME = 1 << 16
_DENSE = 1 << 20  # identifiers up to this go through a table,
_LEAST_DENSE, _DENSE_FOR_EACH = (
    1 << 12,
    1 << 8,
)  # where they are so few, up to the larger of these: it is made anew each time
_SPECIAL = {
    b"hlo_op": HLO_OP,
    b"hlo_module": HLO_MODULE,
    b"program_id": PROGRAM,
    b"device_ordinal": DEVICE,
    b"step_num": STEP,
    b"_r": ROOT,
    b"memcpy_details": COPY,
    b"memset_details": COPY,
    OFFSET: OWN_OFFSET,
    DURATION: OWN_DURATION,
}

Value = int | float | str | bytes | None


def text(raw: bytes) -> str:
    """Text of a trace; bytes that are not UTF-8 become U+FFFD."""
    return raw.decode("utf-8", "replace")


@dataclass
class PlaneIndex:
    """One plane's place in the file and the places of its parts, as (start, length) rows. `part`: of which space of
    the file it is: continuous profiling writes one after the other, each with planes of the same names."""

    name: str
    plane: Plane
    start: int
    end: int
    lines: np.ndarray
    events: np.ndarray
    stat_names: np.ndarray
    stats: np.ndarray
    part: int = 0


@dataclass
class SpaceIndex:
    planes: list[PlaneIndex] = field(default_factory=list)
    hostnames: list[str] = field(default_factory=list)
    notes: list[tuple[str, int]] = field(default_factory=list)  # errors and warnings that the profiler recorded
    lost: list[Lost] = field(default_factory=list)
    damage: int | None = None  # where the walk over the file had to stop


def _ranges(fields: Fields, number: int, end: int) -> np.ndarray:
    chosen = (fields.number == number) & (fields.wire == BYTES)
    start = fields.start[chosen]
    ranges = np.empty((len(start), 2), np.int64)
    ranges[:, 0] = start
    np.minimum(fields.length[chosen], end - start, out=ranges[:, 1])
    return ranges


def index_space(window: Window, parts: Sequence[tuple[int, int]] | None = None) -> SpaceIndex:
    """Walks the file and its planes, not their lines. What cannot be walked is named in `lost`; nothing is raised.

    `parts`: where each space of the file begins and ends, if it holds several.
    """
    space = SpaceIndex()
    for part, (begin, stop) in enumerate([(0, window.size)] if parts is None else parts):
        for fields, damage in window.walk(begin, stop):
            for number, wire, start, length in zip(*(column.tolist() for column in fields), strict=True):
                if wire != BYTES:
                    continue
                end = min(start + length, stop)
                if number == 1:
                    _index_plane(window, space, start, end, part)
                elif number in (2, 3):
                    space.notes.append((text(window.bytes(start, min(end - start, _MAX_NAME))), start))
                elif number == 4:
                    space.hostnames.append(text(window.bytes(start, min(end - start, _MAX_NAME))))
            if damage is not None:
                space.damage = damage if space.damage is None else min(damage, space.damage)
    return space


def _index_plane(window: Window, space: SpaceIndex, start: int, end: int, part: int) -> None:
    fields, damage = window.fields(start, end)
    names = _ranges(fields, _NAME, end)
    name = text(window.bytes(int(names[-1, 0]), min(int(names[-1, 1]), _MAX_NAME))) if len(names) else ""
    if damage is not None:
        space.lost.append(Lost(f"part of plane {name!r}", "its fields are damaged or the file ends in it", damage))
        if not name:
            return
    space.planes.append(
        PlaneIndex(
            name,
            plane_of(name),
            start,
            end,
            *(_ranges(fields, n, end) for n in (_LINE, _EVENT_METADATA, _STAT_METADATA, _STAT)),
            part=part,
        )
    )


@dataclass(frozen=True)
class EventName:
    """One event metadata: names, and its stats as (name, value)."""

    name: str
    display: str
    stats: tuple[tuple[str, Value], ...]

    def get(self, stat: str) -> Value:
        return next((v for n, v in self.stats if n == stat), None)


class Names:
    """The tables of one plane: names of its stats by identifier, and the compiled form of all, `lookup`."""

    def __init__(self, window: Window, index: PlaneIndex, numbers: "Numbers", marks: dict[bytes, int]):
        self.stat_names, self.damaged = window.names(index.stat_names, STAT_NAME)
        entries, damaged = window.entries(index.events, STAT_NAME)
        self.damaged += damaged
        ids, events, mark = [], [], []
        for key, name, row in entries:
            number = numbers.plain_event(name) if row < 0 else self._event(window, index.events[row], numbers)
            if number is not None:
                ids.append(key)
                events.append(number)
                mark.append(marks.get(name, 0))
        names = list(self.stat_names.values())
        self.lookup = Lookup(
            *_identifiers(np.array(ids, np.int64)),
            *_identifiers(np.fromiter(self.stat_names, np.int64, len(names))),
            np.array([_SPECIAL.get(n, 0) for n in names], np.int8),
            np.array([numbers.text(n) for n in names], np.int32),
            np.array([*events, numbers.plain_event(b"")], np.int64),
            np.array([*mark, 0], np.int8),
        )

    def _event(self, window: Window, place: np.ndarray, numbers: "Numbers") -> int | None:
        """Number of an event metadata that holds more than its name; None where it is damaged."""
        try:
            value = XPLANE["EventEntry"].FromString(window.bytes(int(place[0]), int(place[1]))).value
        except DecodeError:
            self.damaged += 1
            return None
        stats = tuple(stat_value(s, self.stat_names) for s in value.stats)
        return numbers.event(EventName(text(value.name), text(value.display_name), stats))


def _identifiers(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(dense table, sorted identifiers beyond it, their rows)."""
    rows = np.arange(len(ids), dtype=np.int32)
    small = (ids >= 0) & (ids < min(_DENSE, max(_LEAST_DENSE, _DENSE_FOR_EACH * len(ids))))
    dense = np.full(int(ids[small].max()) + 1 if small.any() else 0, -1, np.int32)
    dense[ids[small]] = rows[small]
    order = np.argsort(ids[~small], kind="stable")
    return dense, ids[~small][order], rows[~small][order]


def plane_stats(window: Window, index: PlaneIndex) -> dict[str, Value]:
    """Stats of a plane as a whole, by name."""
    if not len(index.stats):
        return {}
    stats = []
    for start, length in index.stats.tolist():
        with contextlib.suppress(DecodeError):
            stats.append(XPLANE["Stat"].FromString(window.bytes(start, length)))
    wanted = {number for s in stats for number in (s.metadata_id, s.ref_value % (1 << 63))}
    names, _ = window.names(index.stat_names, STAT_NAME, wanted)
    return dict(stat_value(stat, names) for stat in stats)


def stat_value(stat: Any, names: dict[int, bytes]) -> tuple[str, Value]:
    """(name, value) of a decoded stat; a reference that leads nowhere is None."""
    name = text(names.get(stat.metadata_id, b""))
    if stat.HasField("str_value"):
        return name, text(stat.str_value)
    if stat.HasField("ref_value"):
        found = names.get(stat.ref_value)
        return name, None if found is None else text(found)
    for kind in ("int64_value", "uint64_value", "double_value", "bytes_value"):
        if stat.HasField(kind):
            return name, getattr(stat, kind)
    return name, None


class Numbers:
    """Numbers for texts and events that may repeat from plane to plane, so that rows of many planes share them."""

    def __init__(self) -> None:
        self._texts: dict[bytes, int] = {}
        self._plain: dict[bytes, int] = {}
        self._events: dict[EventName, int] = {}
        self.texts: list[bytes] = []
        self.events: list[EventName] = []

    def text(self, raw: bytes) -> int:
        """Number of a text."""
        number = self._texts.setdefault(raw, len(self.texts))
        if number == len(self.texts):
            self.texts.append(raw)
        return number

    def event(self, event: EventName) -> int:
        """Number of an event."""
        number = self._events.setdefault(event, len(self.events))
        if number == len(self.events):
            self.events.append(event)
        return number

    def plain_event(self, name: bytes) -> int:
        """Number of an event that is no more than a name."""
        number = self._plain.get(name)
        if number is None:
            number = self._plain[name] = self.event(EventName(text(name), "", ()))
        return number


_PROCESS_PATH = re.compile(r"(?:^|[/_.-])(?:process|proc|rank|worker|task)[_-]?(\d+)(?=[/_.-]|$)", re.IGNORECASE)


def process_of_path(path: str) -> int | None:
    """Process number that a path tells, as in `logs/process_3/plugins/...`; the last such part counts."""
    found = _PROCESS_PATH.findall(path)
    return int(found[-1]) if found and len(found[-1]) < 9 else None
