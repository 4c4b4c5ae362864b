"""Traces of any number of hosts, made of what the four processes of the bundled reference run recorded at once.

Hosts come in groups of four that train together, as the reference run does: group g is its processes under the numbers
4 g to 4 g + 3, with devices and collectives numbered accordingly. Each host has a clock of its own, off by up to a
second. One host is slow: in each step an operation of its own takes DELAY_NS longer. As much longer its partner waits
for it in their first collective, and the other two wait in the collective in which they meet these; what comes after
comes later on all four.
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

WINDOWS = ("window_0", "window_2")  # of 19 steps each, and who is slow is said of 20 at least; in window_1 one is slow
GROUP = 4  # processes that the reference run has
DELAY_NS = 200_000_000
CLOCKS_NS = 1_000_000_000  # clocks are off by up to so much
MEETING = b"all-reduce"
OF_PAIR, OF_PAIRS = b"all-reduce", b"all-reduce.25"
"""The first meeting of a step, of processes 0 and 1, and 2 and 3; and the last, of 0 and 2, and 1 and 3."""


def path_of(folder: Path, window: str, host: int) -> Path:
    """Where a host's trace lies; the profiler's own names, with the number of the process."""
    return folder / window / f"process_{host}" / "vm.xplane.pb"


def write(folder: Path, hosts: int, slow: int | None, seed: int = 1) -> int:
    """Write the traces of so many hosts below `folder`, `slow` among them being slow; returns their bytes."""
    assert hosts % GROUP == 0 and (slow is None or 0 <= slow < hosts)
    draw, written = Random(seed), 0
    clocks_ns = [draw.randint(0, CLOCKS_NS) for _ in range(hosts)]
    for window in WINDOWS:
        plain = [_Trace(window, process, None, ()) for process in range(GROUP)]
        late = [] if slow is None else _late(window, slow % GROUP)
        for host in range(hosts):
            of = late if slow is not None and host // GROUP == slow // GROUP else plain
            path = path_of(folder, window, host)
            path.parent.mkdir(parents=True)
            written += path.write_bytes(of[host % GROUP].told(host // GROUP, clocks_ns[host]))
    return written


def _late(window: str, slow: int) -> list["_Trace"]:
    """The traces of a group of which one process is slow."""
    seen = [_Trace(window, process, None, ()) for process in range(GROUP)]
    meetings = [trace.meetings(OF_PAIR if n // 2 == slow // 2 else OF_PAIRS) for n, trace in enumerate(seen)]
    count = min(len(found) for found in meetings)
    delayed = []
    for process, trace in enumerate(seen):
        found = meetings[process][:count]
        at = trace.work_before(found) if process == slow else [(start + end) // 2 for start, end in found]
        delayed.append(_Trace(window, process, DELAY_NS * 1000, tuple(at)))
    return delayed


@dataclass
class _Trace:
    """What one process recorded, with a delay (ps) put in at each of the times `at` (ps since the epoch), rising."""

    window: str
    process: int
    delay_ps: int | None
    at: tuple[int, ...]
    space: Any = field(init=False)

    def __post_init__(self) -> None:
        folder = TRACES / "attempt_1" / self.window / f"process_{self.process}"
        packed = next(folder.glob("*.xplane.pb.gz")).read_bytes()
        self.space = XSpace.FromString(gzip.decompress(packed))
        if self.delay_ps:
            for _, line in self._lines():
                self._delay(line, self.delay_ps)

    def told(self, group: int, clock_ns: int) -> bytes:
        """The trace as the process of that group tells it, its clock so far ahead."""
        told = XSpace()
        told.CopyFrom(self.space)
        other = object.__new__(_Trace)
        other.space = told
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

    def meetings(self, name: bytes) -> list[tuple[int, int]]:
        """(start, end) of each time that all devices of the process met in this operation, ps since the epoch."""
        devices: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for executed, device, start, end in self.executed():
            if executed == name:
                devices[device].append((start, end))
        each = [sorted(some) for some in devices.values()]
        met = [(max(s for s, _ in k), min(e for _, e in k)) for k in zip(*each, strict=True)]
        assert met and all(start < end for start, end in met), "the devices of a process met at different times"
        return met

    def work_before(self, meetings: list[tuple[int, int]]) -> list[int]:
        """The middle of the longest operation of its own before each of these meetings, and after any other."""
        executed = sorted((s, e, name.startswith(MEETING)) for name, _, s, e in self.executed())
        found = []
        for start, _ in meetings:
            since = max((e for _, e, meeting in executed if meeting and e <= start), default=0)
            some = [(s, e) for s, e, meeting in executed if not meeting and s >= since and e <= start]
            longest = max(some, default=(start - 2000, start - 1000), key=lambda span: span[1] - span[0])
            found.append(sum(longest) // 2)
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
