"""Traces of any number of hosts, made of what the four processes of the bundled reference run recorded at once.

Hosts come in groups of four that train together, as the reference run does: group g is its processes under the numbers
4 g to 4 g + 3, with devices and collectives numbered accordingly. Each host has a clock of its own, off by up to a
second. One host is slow: in each step an operation of its own takes DELAY_NS longer, and by as much longer the other
three of its group wait in the collective that follows; what comes after comes later on all four.
"""

import bisect
import gzip
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.xplane_ingest import TRACES
from benchmarks.xspace import XSpace
from collectors.device.hlo.shapes import HLO
from collectors.device.xplane.ops import CPU_DEVICES_PER_PROCESS as DEVICES

WINDOW = TRACES / "attempt_1" / "window_0"
GROUP = 4  # processes that the reference run has
DELAY_NS = 50_000_000
CLOCKS_NS = 1_000_000_000  # clocks are off by up to so much
MEETING = b"all-reduce"


def path_of(folder: Path, host: int) -> Path:
    """Where a host's trace lies; the profiler's own names, with the number of the process."""
    return folder / f"process_{host}" / "vm.xplane.pb"


def write(folder: Path, hosts: int, slow: int | None, seed: int = 1) -> int:
    """Write the traces of so many hosts below `folder`, `slow` among them being slow; returns their bytes."""
    assert hosts % GROUP == 0 and (slow is None or 0 <= slow < hosts)
    draw, written = Random(seed), 0
    plain = [_Trace(process, None, ()) for process in range(GROUP)]
    late = [] if slow is None else _late(slow % GROUP)
    for host in range(hosts):
        of = late if slow is not None and host // GROUP == slow // GROUP else plain
        path = path_of(folder, host)
        path.parent.mkdir(parents=True)
        written += path.write_bytes(of[host % GROUP].told(host // GROUP, draw.randint(0, CLOCKS_NS)))
    return written


def _late(slow: int) -> list["_Trace"]:
    """The traces of a group of which one process is slow."""
    seen = [_Trace(process, None, ()) for process in range(GROUP)]
    meetings = [trace.meetings() for trace in seen]
    count = min(len(found) for found in meetings)
    delayed = []
    for process, trace in enumerate(seen):
        found = meetings[process][:count]
        at = trace.work_before(found) if process == slow else [(start + end) // 2 for start, end in found]
        delayed.append(_Trace(process, DELAY_NS * 1000, tuple(at)))
    return delayed


@dataclass
class _Trace:
    """What one process recorded, with a delay (ps) put in at each of the times `at` (ps since the epoch), rising."""

    process: int
    delay_ps: int | None
    at: tuple[int, ...]
    space: Any = field(init=False)

    def __post_init__(self) -> None:
        packed = next((WINDOW / f"process_{self.process}").glob("*.xplane.pb.gz")).read_bytes()
        self.space = XSpace.FromString(gzip.decompress(packed))
        if self.delay_ps:
            for _, line in self._lines():
                self._delay(line, self.delay_ps)
        self._ordinals = list(self._of_devices())
        self._clocks = list(self._of_clocks())
        self._programs = list(self._of_programs())

    def told(self, group: int, clock_ns: int) -> bytes:
        """The trace as the process of that group tells it, its clock so far ahead."""
        told = XSpace()
        told.CopyFrom(self.space)
        other = object.__new__(_Trace)
        other.process, other.space = self.process, told
        shift = group * GROUP * DEVICES
        for stat in other._of_devices():
            name = stat.WhichOneof("value")
            setattr(stat, name, getattr(stat, name) + shift)
        for _, line in other._lines():
            line.timestamp_ns += clock_ns
        for stat in other._of_clocks():
            name = stat.WhichOneof("value")
            setattr(stat, name, getattr(stat, name) + clock_ns)
        for stat in other._of_programs():
            stat.bytes_value = _assigned(stat.bytes_value, shift)
        return told.SerializeToString()

    def meetings(self) -> list[tuple[int, int]]:
        """(start, end) of each meeting that all devices of the process had together, ps since the epoch: of the
        operation that took most time."""
        spans: dict[bytes, dict[int, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
        for name, device, start, end in self.executed():
            if name.startswith(MEETING):
                spans[name][device].append((start, end))
        devices = max(spans.values(), key=lambda of: sum(e - s for some in of.values() for s, e in some))
        each = [sorted(some) for some in devices.values()]
        met = [(max(s for s, _ in k), min(e for _, e in k)) for k in zip(*each, strict=False)]
        assert met and all(start < end for start, end in met), "the devices of a process met at different times"
        return met

    def work_before(self, meetings: list[tuple[int, int]]) -> list[int]:
        """The middle of the longest operation of its own before each of these meetings."""
        work = sorted((s, e) for name, _, s, e in self.executed() if not name.startswith(MEETING))
        starts, found, since = [s for s, _ in work], [], 0
        for start, end in meetings:
            some = work[bisect.bisect_left(starts, since) : bisect.bisect_left(starts, start)]
            some = [(s, e) for s, e in some if e <= start] or [(start - 2000, start - 1000)]
            longest = max(some, key=lambda span: span[1] - span[0])
            found.append(sum(longest) // 2)
            since = end
        return found

    def executed(self) -> Iterator[tuple[bytes, int, int, int]]:
        """(name, device, start, end) of each operation that a device executed, ps since the epoch."""
        for plane, line in self._lines():
            names = {entry.key: entry.value.name for entry in plane.event_metadata}
            ordinal = _numbered(plane, b"device_ordinal")
            for event in line.events:
                device = next((_number(s) for s in event.stats if s.metadata_id in ordinal), None)
                if device is not None:
                    start = line.timestamp_ns * 1000 + event.offset_ps
                    yield names[event.metadata_id], device, start, start + event.duration_ps

    def _delay(self, line: Any, delay_ps: int) -> None:
        base = line.timestamp_ns * 1000
        for event in line.events:
            start, end = base + event.offset_ps, base + event.offset_ps + event.duration_ps
            begins, ends = (t + delay_ps * bisect.bisect_right(self.at, t) for t in (start, end))
            event.offset_ps, event.duration_ps = begins - base, ends - begins

    def _lines(self) -> Iterator[tuple[Any, Any]]:
        return ((plane, line) for plane in self.space.planes for line in plane.lines)

    def _of_devices(self) -> Iterator[Any]:
        for plane, line in self._lines():
            wanted = _numbered(plane, b"device_ordinal")
            for event in line.events:
                yield from (stat for stat in event.stats if stat.metadata_id in wanted)

    def _of_clocks(self) -> Iterator[Any]:
        for plane in self.space.planes:
            wanted = _numbered(plane, b"profile_start_time", b"profile_stop_time")
            yield from (stat for stat in plane.stats if stat.metadata_id in wanted)

    def _of_programs(self) -> Iterator[Any]:
        for plane in self.space.planes:
            for entry in plane.event_metadata:
                yield from (s for s in entry.value.stats if s.WhichOneof("value") == "bytes_value")


def _numbered(plane: Any, *names: bytes) -> set[int]:
    return {entry.key for entry in plane.stat_metadata if entry.value.name in names}


def _number(stat: Any) -> int:
    return int(getattr(stat, stat.WhichOneof("value")))


def _assigned(program: bytes, shift: int) -> bytes:
    """The program on devices numbered from elsewhere; bytes that are no program stay as they are."""
    hlo = HLO["HloProto"].FromString(program)
    for part in hlo.hlo_module.device_assignment.computation_devices:
        part.replica_device_ids[:] = [n + shift for n in part.replica_device_ids]
    return hlo.SerializeToString()
