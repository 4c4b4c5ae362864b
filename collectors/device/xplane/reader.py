"""One capture, plane by plane: HLO modules first, then host threads, then devices, then what the whole tells."""

import hashlib
from collections.abc import Iterator
from pathlib import PurePath
from typing import BinaryIO, NamedTuple

import numpy as np

from collectors.base import Item, Lost, Rows, Source
from collectors.device.xplane.capture import capture_items
from collectors.device.xplane.clock import DURATION, OFFSET, SAMPLES, offsets, samples
from collectors.device.xplane.events import decode
from collectors.device.xplane.header import line_header
from collectors.device.xplane.line import Line
from collectors.device.xplane.lines import line_role
from collectors.device.xplane.marks import MARKS
from collectors.device.xplane.modules import modules_of
from collectors.device.xplane.ops import CPU_DEVICES_PER_PROCESS
from collectors.device.xplane.parts import TEN_DAYS_NS, alike, near
from collectors.device.xplane.planes import (
    STAT_NAME,
    Names,
    PlaneIndex,
    SpaceIndex,
    Value,
    plane_stats,
    process_of_path,
    text,
)
from collectors.device.xplane.ranks import Ranks
from collectors.device.xplane.state import State, grown
from collectors.device.xplane.tables import (
    BAD_AT,
    BAD_EVENTS,
    BAD_STATS,
    BY_HLO,
    BY_NAME,
    HOST_HLO,
    LAST_DUR,
    LAST_START,
    MAX_PS,
    N_EVENTS,
    N_KNOTS,
    N_OPS,
    N_STATS,
    NEED,
    NEXT_EVENT,
    POS,
    UNSORTED,
)
from collectors.device.xplane.wire import BAD, DONE, FULL, MORE, Window

_EPOCH_NS = 10**17  # a line's timestamp beyond it counts from 1970, one below from the start of the profile
_LINES_WINDOW = 1 << 22  # bytes of lines in memory at a time
_CLOCK_WINDOW = 1 << 18  # bytes of a line that its device's clock is learnt from
_LINE_WINDOW = 1 << 12  # and of a further piece of one, whether it tells that clock, too
_NOTES_WINDOW = 1 << 17  # the same for names and stats of planes, which lie between lines
_MAX_EVENT = 1 << 28
_MAX_TEXTS = 200_000
_MANY_NAMES = 64
_MAX_NAMES = 1 << 22  # bytes of a plane's tables that are compared with those of planes before it


class Place(NamedTuple):
    """Where a line lies, its own fields (see `line_header`), and the offset of damage or None."""

    start: int
    end: int
    header: np.ndarray
    damage: int | None


class Reader:
    """Walks one capture; what it finds is kept in its `state`."""

    def __init__(self, source: Source, file: BinaryIO, space: SpaceIndex):
        self.state, self.space = State(source), space
        self.window = Window(file, _LINES_WINDOW)
        self.notes = Window(file, _NOTES_WINDOW)
        self._places: dict[tuple, int] = {}  # numbers of lines
        self._generation = 0  # of the state's numbers: operations are not told apart by those of another
        self._names: dict[bytes, Names] = {}
        self._has_device = False
        self._own: dict[int, int] = {}  # by a line's start: ps to add to the times that its device measured
        self._starts: dict[int, int] = {}  # by part of the file: where its time starts, as the profiler noted it
        self._lines: dict[tuple, tuple[int, Line]] = {}  # the part that a line was met in last, and the line
        self._count = 0  # of lines
        self._named: set[int] = set()  # starts of planes whose damaged names were told

    def items(self) -> Iterator[Item]:
        space = self.space
        yield from space.lost
        for note, offset in space.notes:
            yield Lost("something the profiler itself noted", note.strip() or "it does not say what", offset)
        self._clock()
        self._device_clocks()
        for index in space.planes:
            if not len(index.lines) and len(index.events):
                yield from modules_of(self.notes, index, self.state.source.index, self.state.programs)
        devices = [p for p in space.planes if p.plane.device is not None]
        self._has_device = any(len(p.lines) for p in devices)
        for planes in alike([p for p in space.planes if p.plane.device is None]) + alike(devices):
            if any(len(p.lines) for p in planes):
                yield from self._plane(planes)
        yield from self._rest()

    def _clock(self) -> None:
        """Sets where time starts: as the profiler noted it, else at the earliest line."""
        stops: dict[int, int] = {}
        for index in self.space.planes:
            if index.name == "Task Environment":
                stats = plane_stats(self.notes, index)
                for times, name in ((self._starts, "profile_start_time"), (stops, "profile_stop_time")):
                    if (told := _time(stats.get(name))) is not None:
                        times[index.part] = told
        start = min(near(self._starts.values()), default=None)
        self.state.stop_ns = max(near(stops.values()), default=None)
        if start is None:
            stamps = [
                int(self._header(start, start + length)[0][3])
                for plane in self.space.planes
                if plane.plane.kind != "other"
                for start, length in plane.lines.tolist()
            ]
            stamps = [t for t in stamps if t > _EPOCH_NS]
            start = min(stamps, default=None)
            self.state.lost.append(
                Lost(
                    "the time of day" if start is None else "the start of the profile",
                    "no `Task Environment`; "
                    + ("times count from 0" if start is None else "taken from the first line"),
                )
            )
        self.state.base_ns = start or 0

    def _device_clocks(self) -> None:
        """Learns where the times that devices measured themselves lie, before any line is decoded.

        A device has one clock: what its lines tell together, or they would come apart.
        """
        places: list[list[int]] = []
        found: list[np.ndarray] = []
        for planes in alike([p for p in self.space.planes if p.plane.kind in ("tpu", "device")]):
            left: dict[tuple[int, bytes], int] = {}
            lines = {start: out for index in planes for start, out in self._samples(index, left)}
            if lines:
                told = np.concatenate(list(lines.values()))
                places.append(list(lines))
                found.append(told[np.argsort(told[:, 0], kind="stable")])
        self._own = {start: own for of, own in zip(places, offsets(found), strict=True) for start in of}

    def _samples(self, index: PlaneIndex, left: dict[tuple[int, bytes], int]) -> Iterator[tuple[int, np.ndarray]]:
        """(start of a line, times of its first events by both clocks) of each line that tells them. `left`: how many
        bytes of each line are still to be looked at: of one in pieces not more than of a whole one."""
        known, _ = self.notes.names(index.stat_names, STAT_NAME)
        ids = {name: key for key, name in known.items()}
        if OFFSET not in ids or DURATION not in ids:
            return
        for start, length in index.lines.tolist():
            place = self._place(start, start + length)
            line = (int(place.header[0]), self.window.bytes(int(place.header[1]), min(int(place.header[2]), 256)))
            shift, room = self._shift_ps(int(place.header[3]), index.part), left.get(line, _CLOCK_WINDOW)
            out = np.zeros((SAMPLES if room > 0 else 1, 2), np.int64)
            data, base, have = self.window.at(start, min(length, _LINES_WINDOW, max(room, _LINE_WINDOW)))
            left[line] = room - length
            n = samples(data, start - base, have, place.end - base, ids[OFFSET], ids[DURATION], out)
            if n and shift is not None:
                yield start, out[: n if room > 0 else 0] + np.array([shift, 0])

    def _plane(self, planes: list[PlaneIndex]) -> Iterator[Item]:
        """The lines of a plane, whose pieces stand in one part of the file or more."""
        self.state.clock.next_plane()
        if planes[0].plane.device is not None:
            self.state.peaks.plane(self._stats(planes))
        # Lines that tell the device's own times come first: by them the others are moved.
        for own in (True, False) if self._own else (False,):
            for index in planes:
                lines = [line for line in index.lines.tolist() if (line[0] in self._own) == own]
                if lines:
                    yield from self._piece(index, lines)

    def _stats(self, planes: list[PlaneIndex]) -> dict[str, Value]:
        """Stats of a plane as a whole, of all its pieces."""
        return {name: value for index in planes for name, value in plane_stats(self.notes, index).items()}

    def _piece(self, index: PlaneIndex, lines: list[list[int]]) -> Iterator[Item]:
        """Some lines of a plane's piece."""
        state = self.state
        if len(state.numbers.texts) + len(state.numbers.events) > _MAX_TEXTS:  # else those of all planes would pile up
            yield from self._flush()
            state.forget_numbers()
            self._names.clear()
            self._generation += 1
        names = self._names_of(index)
        if names.damaged and index.start not in self._named:
            self._named.add(index.start)
            yield Lost(f"{names.damaged} names of plane {index.name!r}", "their metadata are damaged", index.start)
        state.marked.plane(names, state.numbers)
        state.launches.plane(names, state.numbers)
        for start, length in lines:
            yield from self._line(index, names, self._place(start, start + length))

    def _names_of(self, index: PlaneIndex) -> Names:
        """The tables of a plane; read once where joined traces repeat them."""
        key = hashlib.blake2b(index.name.encode(), digest_size=16)
        for ranges in (index.events, index.stat_names):
            if len(ranges):
                start, end = int(ranges[0, 0]), int(ranges[-1].sum())
                if end - start > _MAX_NAMES:
                    return Names(self.notes, index, self.state.numbers, MARKS if index.plane.kind == "host" else {})
                key.update(self.notes.bytes(start, end - start))
        found = self._names.get(key.digest())
        if found is None:
            if len(self._names) == _MANY_NAMES:
                self._names.clear()
            found = Names(self.notes, index, self.state.numbers, MARKS if index.plane.kind == "host" else {})
            self._names[key.digest()] = found
        return found

    def _place(self, start: int, end: int) -> Place:
        return Place(start, end, *self._header(start, end))

    def _header(self, start: int, end: int) -> tuple[np.ndarray, int | None]:
        header = np.zeros(7, np.int64)
        pos = start
        while pos < end:
            data, base, have = self.window.at(pos, 20)
            before = header.copy()
            at, how = line_header(data, pos - base, min(have, end - base), end - base, header)
            for i in (1, 4):
                if header[i] != before[i]:
                    header[i] += base
            if how == DONE:
                break
            if how == BAD or at + base == pos:
                return header, pos if how != BAD else at + base
            pos = at + base
        return header, None

    def _shift_ps(self, stamp: int, part: int) -> int | None:
        """ps to add to a line's offsets, so that they count from the start of the capture. `stamp`: the line's time,
        since 1970 or since the start of the part of the file in which it stands."""
        base = self.state.base_ns
        if abs(stamp - base) < TEN_DAYS_NS:
            return (stamp - base) * 1000
        since = self._starts.get(part, base) - base + stamp
        return since * 1000 if 0 <= stamp < TEN_DAYS_NS and abs(since) < TEN_DAYS_NS else None

    def _line_of(self, index: PlaneIndex, number: int, name: str, role: str, mode: int) -> Line:
        """A line: the one that an earlier part of the file began, where this is more of it."""
        key = (index.name, number, name)
        part, line = self._lines.get(key, (index.part, None))
        if line is None or part == index.part:
            self._count += 1
            line = Line(self.state, index.plane, name, role, mode, self._count)
        self._lines[key] = (index.part, line)
        return line

    def _line(self, index: PlaneIndex, names: Names, of: Place) -> Iterator[Item]:
        state, (start, end, header, damage) = self.state, of
        name = text(self.window.bytes(int(header[1]), min(int(header[2]), 1 << 16)))
        name = name or text(self.window.bytes(int(header[4]), min(int(header[5]), 1 << 16))) or f"line {header[0]}"
        what = f"line {name!r} of plane {index.name!r}"
        shift = self._shift_ps(int(header[3]), index.part)
        if shift is None:
            yield Lost(what, f"its timestamp {header[3]} ns fits neither the capture nor its clock", start)
            return
        plane = index.plane
        role = line_role(plane, name)
        mode = BY_HLO if plane.kind == "gpu" and role == "compute" else BY_NAME
        if plane.kind == "host" and not self._has_device:
            mode = HOST_HLO
        own = self._own.get(start)
        line = self._line_of(index, int(header[0]), name, role, mode)
        line.begin(moved=own is None and state.clock.known)
        # Operations are told apart within a line of this name, however many joined traces repeat it.
        place = self._places.setdefault((self._generation, index.name, name), len(self._places))
        state.clock.line(own, line.number)
        batches, counters = state.batches, state.batches.counters
        counters[[UNSORTED, BAD_EVENTS, BAD_STATS, LAST_DUR]] = 0
        counters[BAD_AT], counters[LAST_START] = -1, -MAX_PS
        pos, bad_at, need = start, None, 20
        while True:
            data, base, have = self.window.at(pos, need)
            first, first_stat = int(counters[N_EVENTS]), int(counters[N_STATS])
            how = decode(
                data,
                pos - base,
                min(have, end - base),
                end - base,
                shift,
                place,
                mode,
                names.lookup,
                state.ops,
                batches.events,
                batches.stats,
                batches.inline,
                batches.marks,
                counters,
                batches.scratch,
                state.clock.own,
                state.clock.knots,
            )
            if counters[BAD_AT] >= 0 and bad_at is None:
                bad_at = int(counters[BAD_AT]) + base
            at, need = int(counters[POS]) + base, int(counters[NEED])
            line.took(first, int(counters[N_EVENTS]), first_stat)
            if how == DONE:
                break
            if how == FULL:
                if counters[N_OPS] == len(state.ops.count):
                    state.ops = grown(state.ops, int(counters[N_OPS]))
                elif state.clock.own[N_KNOTS] + 4 > len(state.clock.knots):
                    state.clock.take()
                elif counters[N_EVENTS] == len(batches.events.dur):
                    if rows := batches.flush_events(int(counters[NEXT_EVENT])):
                        yield rows
                elif line.marks < len(batches.marks.rows):
                    if rows := batches.flush_stats():
                        yield rows
                    elif at == pos:
                        batches.more_inline()
            elif how == BAD:
                damage = at if damage is None else damage
                break
            elif how == MORE and need > _MAX_EVENT:
                yield Lost(f"an event of {what}", f"its {need:,} bytes are too many", at)
                at, need = at + need, 20
            elif how == MORE and at == pos and self.window.at(pos, need)[2] + self.window.at(pos, need)[1] < pos + need:
                damage = at
                break
            pos = at
        state.clock.take(ended=line.number)
        line.end()
        if damage is not None:
            yield Lost(f"the rest of {what}", "its fields are damaged or the file ends in it", damage)
        if counters[BAD_EVENTS]:
            yield Lost(f"{counters[BAD_EVENTS]} events of {what}", "damaged inside", bad_at)
        if counters[BAD_STATS]:
            yield Lost(f"{counters[BAD_STATS]} stats of {what}", "damaged inside", bad_at)
        if line.disorder:
            line.disorder = False
            yield Lost(f"exact self times of {what}", "its events are out of order over a long distance")

    def _flush(self) -> Iterator[Rows]:
        state = self.state
        for rows in (state.batches.flush_events(int(state.batches.counters[NEXT_EVENT])), state.batches.flush_stats()):
            if rows:
                yield rows

    def _rest(self) -> Iterator[Item]:
        state = self.state
        yield from self._flush()
        stats: dict[str, Value] = {}
        devices: dict[str, tuple[PlaneIndex, dict[str, Value]]] = {}
        for index in self.space.planes:
            if index.plane.device is not None and not index.plane.sparse:
                devices.setdefault(index.name, (index, {}))[1].update(plane_stats(self.notes, index))
            elif index.name.startswith("/host"):
                stats |= plane_stats(self.notes, index)
        process = process_of_path(state.source.name)
        if process is None:
            process = process_of_path("/".join(PurePath(state.source.path).parts[-6:]))
        if process is None and any(d >= CPU_DEVICES_PER_PROCESS for d in state.stand_ins):
            process = min(state.stand_ins) // CPU_DEVICES_PER_PROCESS
        host = self.space.hostnames[0] if self.space.hostnames else None
        host = host or PurePath(state.source.name).name.split(".")[0] or None
        if process is not None:
            host = f"{host}/{process}" if host else f"process {process}"
        yield from state.op_rows.rows(host, state.ops)
        steps, spans = state.marked.step_rows(state.steps, state.base_ns, host)
        state.steps = spans
        yield from steps
        yield from state.marked.other_rows(state.base_ns, host)
        ranks = Ranks([*devices.values()], state.stand_ins, state.programs.widest)
        yield from state.launches.rows(state.op_rows, state.source.index)
        yield from state.peaks.told(state.ops)
        yield from state.collectives.rows(ranks, state.source.index, host, state.base_ns, state.steps)
        yield from capture_items(state, host, process, [*devices.values()], stats)
        yield from state.lost


def _time(value: Value) -> int | None:
    return value if isinstance(value, int) and _EPOCH_NS < value < 1 << 62 else None
