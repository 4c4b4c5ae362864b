"""One trace: its events in one pass, then what they mean together."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from collectors.base import Fact, Item, Lost, Rows, Source
from collectors.device.kineto.collectives import collective_rows
from collectors.device.kineto.columns import INT, REAL, WORD, Batch, Stats
from collectors.device.kineto.device import Devices, devices_of, rows_of
from collectors.device.kineto.gather import HOST, Gathered
from collectors.device.kineto.graft import graft
from collectors.device.kineto.host import Host, Sweeper
from collectors.device.kineto.kinds import A_GRAPH
from collectors.device.kineto.launches import launch_rows
from collectors.device.kineto.marks import (
    devices_by_process,
    fetch_rows,
    memory_rows,
    owners_of,
    step_rows,
    steps_by_process,
    steps_of_launches,
    steps_taken,
)
from collectors.device.kineto.operations import Calls, device_ops, host_ops
from collectors.device.kineto.span import Span, span_of
from collectors.device.kineto.spill import Spill, low
from collectors.device.kineto.standing_in import stand_in
from collectors.device.kineto.stream import Stream
from collectors.device.kineto.texts import Texts
from collectors.device.kineto.who import Who, device_type, of_device, properties
from collectors.device.xplane.arrays import batch, coded, over
from collectors.ingesting.unpack import BROKEN, SafeSource
from errors import InputError
from runs.schema import SCHEMAS

NAME = "kineto"
_ROCM = ("hip_runtime_version", "hip_driver_version", "roctracer_version", "rocprofiler-sdk_version")
_VERSIONS = ("cuda_runtime_version", "cuda_driver_version", "cupti_version", *_ROCM)


class Events(Protocol):
    """Events of one profile in batches, whatever file they come from. `texts`: those of its events; `beside`: what
    stands beside them, as traces of PyTorch name it; `lost`: what could not be read, complete when all batches have
    been taken; `expected`: what a file without events should have been."""

    expected: str

    @property
    def texts(self) -> Texts: ...

    @property
    def beside(self) -> dict[str, Any]: ...

    @property
    def lost(self) -> list[Lost]: ...

    def batches(self) -> Iterator[tuple[Batch, Stats]]: ...


class Reader:
    """Reads one source; `items` is its only use."""

    def __init__(self, source: Source, stream: Events | None = None, name: str = NAME):
        self._source, self._capture, self._name = source, source.index, name
        self._stream = stream or Stream(source)
        self._gathered = Gathered(self._stream.texts)

    def items(self) -> Iterator[Item]:
        """The trace as rows, facts and named losses. Raises InputError where it holds no event that can be read."""
        yield from self._events()
        gathered, beside = self._gathered, self._stream.beside
        if not (gathered.seen["stored"] or gathered.seen["memory"]):
            raise InputError(
                "it holds no event that can be read",
                where=self._source.name,
                expected=self._stream.expected,
                advice="The profiler was stopped before it recorded anything; profile whole steps",
            )
        span = self._span()
        who = Who(self._source.name, beside, bool(gathered.device))
        executed = stand_in(gathered)
        sweeper = Sweeper(gathered, span, self._capture, executed)
        yield from sweeper.rows()
        host = sweeper.host
        self._captured_beside(host, who)
        devices = devices_of(gathered, host, span)
        lines = self._lines()
        if not len(executed):  # else nothing was launched
            yield from launch_rows(gathered, devices, host.launches, lines, span, self._capture)
        launched_ns, process = host.launches["start"].copy(), gathered.threads.rows[host.launches["thread"], 0]
        host.launches = host.launches[:0].copy()
        calls = Calls(gathered)
        yield from host_ops(gathered, host, lines, self._capture, who.host)
        yield from device_ops(gathered, devices, calls, self._capture, who.host, len(gathered.ops))
        yield from rows_of(devices, span, self._capture, len(gathered.ops))
        marked = steps_by_process(gathered, span)
        step = steps_of_launches(marked, devices, launched_ns, process)
        owner = owners_of(devices, process)
        driven = devices_by_process(devices, owner, step)
        taken = steps_taken(marked, step, devices, owner, driven, gathered.lost)
        yield from step_rows(taken, span, self._capture, who.host, self._name)
        yield from fetch_rows(gathered, span, owner, driven, who.host, self._name)
        numbers = sorted({int(n) for n in devices.number[devices.events["row"][devices.kernels()]]})
        yield from memory_rows(gathered, beside, numbers, span, self._capture, who.host)
        yield from collective_rows(gathered, devices, step, who, span, self._capture)
        yield from self._capture_items(span, who, devices, numbers)
        yield from self._losses(span, who, devices)

    def _events(self) -> Iterator[Rows]:
        stream, gathered = self._stream, self._gathered
        for events, stats in stream.batches():
            if not gathered.read and self._without_device() is not False:
                gathered.calls = Spill(HOST)
            gathered.take(events)
            if gathered.device:
                gathered.calls = None
            if len(stats.event):
                yield self._stat_rows(stats)
        if not self._without_device():
            gathered.calls = None

    def captured(self) -> tuple[Gathered, Host, Who] | None:
        """What the trace tells of graphs that are captured in it; None where none is."""
        for events, _ in self._stream.batches():
            self._gathered.take(events)
        if not self._gathered.captures:
            return None
        sweeper = Sweeper(self._gathered, self._span(), self._capture, np.zeros(0, np.int64))
        for _ in sweeper.rows():
            pass
        return self._gathered, sweeper.host, Who(self._source.name, self._stream.beside, bool(self._gathered.device))

    def _captured_beside(self, host: Host, who: Who) -> None:
        """Where graphs run, adds what traces beside this one tell of captures on the same rank."""
        if not (self._gathered.meanings.names(host.launches["name"]) == A_GRAPH).any():
            return
        for name, path in getattr(self._source, "captures", ()):
            with contextlib.suppress(InputError, *BROKEN):  # who reads that file tells what is wrong with it
                found = Reader(SafeSource(path, name)).captured()
                if found and (None in (found[2].rank, who.rank) or found[2].rank == who.rank):
                    graft(self._gathered, host, found[0], found[1])

    def _without_device(self) -> bool | None:
        """Whether the trace says that its machine has no device; None where it has not said so yet."""
        beside = self._stream.beside
        if "deviceProperties" not in beside:
            return None
        told = beside.get("distributedInfo")
        backend = str(told.get("backend") if isinstance(told, dict) else "").lower()
        return beside.get("deviceProperties") == [] and not any(name in backend for name in ("nccl", "rccl", "hccl"))

    def _stat_rows(self, stats: Stats) -> Rows:
        n = len(stats.event)
        words = stats.kind == WORD
        columns = [
            over(pa.int32(), np.full(n, self._capture, np.int32)),
            over(pa.int64(), stats.event.copy()),
            self._texts(stats.name),
            over(pa.int64(), stats.value.copy(), stats.kind == INT),
            over(pa.float64(), stats.value.copy(), stats.kind == REAL),
            self._texts(np.where(words, stats.value, -1)),
        ]
        return Rows("event_stats", pa.RecordBatch.from_arrays(columns, schema=SCHEMAS["event_stats"].arrow))

    def _texts(self, codes: np.ndarray) -> pa.DictionaryArray:
        """Text numbers as a dictionary array of the texts in use."""
        codes = codes.astype(np.int64)
        present = np.zeros(len(self._stream.texts) + 2, bool)
        present[codes + 2] = True
        used = np.flatnonzero(present) - 2
        used = used[used != -1]
        place = np.full(len(present), -1, np.int32)
        place[used + 2] = np.arange(len(used))
        return coded(place[codes + 2], [self._stream.texts[c] for c in used.tolist()])

    def _span(self) -> Span:
        gathered = self._gathered
        spilt = (gathered.host, gathered.memory)
        starts = [*(s.starts() for s in spilt), *(part["start"] for part in gathered.device)]
        lows = [*(n for s in spilt for n in s.lows), *(low(part["start"]) for part in gathered.device)]
        return span_of(
            np.sort(np.concatenate(starts)), np.array(lows, np.int64), self._stream.beside.get("baseTimeNanoseconds")
        )

    def _lines(self) -> dict[int, str]:
        """Name of each host thread: as the trace names it, with its number."""
        gathered, texts = self._gathered, self._stream.texts
        lines = {}
        for n, (pid, tid) in enumerate(gathered.threads.rows.tolist()):
            number = texts[tid] if tid >= 0 else ""
            name = texts[gathered.thread_names.get((pid, tid), -1)]
            if not name:
                name = f"thread {number}" if number.lstrip("-").isdigit() else number or "events of no thread"
            elif number and number not in name:
                name = f"{name} ({number})"
            lines[n] = name
        repeated = {name for name, times in Counter(lines.values()).items() if times > 1}
        for n, (pid, _) in enumerate(gathered.threads.rows.tolist()):
            if lines[n] in repeated:
                lines[n] = f"{lines[n]} of process {texts[pid] if pid >= 0 else '?'}"
        return lines

    def _capture_items(self, span: Span, who: Who, devices: Devices, numbers: list[int]) -> Iterator[Item]:
        beside = self._stream.beside
        rocm = any(key in beside for key in _ROCM)
        kind, basis = device_type(of_device(properties(beside), numbers[0]), rocm) if numbers else (None, "measured")
        yield Rows(
            "captures",
            batch(
                "captures",
                {
                    "capture": [self._capture],
                    "host": [who.host],
                    "process": [who.rank],
                    "start_ns": [span.epoch_ns],
                    "stop_ns": [self._gathered.last + span.shift_ns],
                    "devices": [len(numbers) or None],
                    "device_type": [kind],
                    "source": [self._source.name],
                },
            ),
        )
        if kind:
            yield Fact("chip", kind, basis)
        if numbers:
            yield Fact("chips", len(numbers))
            if who.world and who.world > len(numbers):  # a process of a job drives one device
                yield Fact("chips", who.world, "derived")
        for name in _VERSIONS:
            if isinstance(value := beside.get(name), int | float | str):
                yield Fact(name, value)

    def _losses(self, span: Span, who: Who, devices: Devices) -> Iterator[Lost]:
        gathered, stream = self._gathered, self._stream
        yield from stream.lost
        for reason, count in sorted(gathered.lost.items()):
            if count:
                what, _, why = reason.partition(": ")
                yield Lost(f"{count:,} {what}", why)
        if gathered.seen["arrows"]:
            yield Lost(
                f"{gathered.seen['arrows']:,} arrows between events and {gathered.seen['names']:,} names of rows",
                "not kept as events: correlation numbers tell what launched what, and lines hold the names",
            )
        elif gathered.seen["names"]:
            yield Lost(f"{gathered.seen['names']:,} names of rows", "not kept as events: lines hold them")
        if stream.texts.refused:
            yield Lost(
                f"{stream.texts.refused:,} names", f"more than {len(stream.texts):,} different ones are not kept"
            )
        if not span.dated:
            yield Lost("the time of day", "times do not count from 1970, and the file does not tell from when")
        if who.differs:
            said, named = who.differs
            yield Lost("the rank in the file's name", f"it is {named}, where the trace says {said}; the trace counts")
        yield from self._unlinked(devices)

    def _unlinked(self, devices: Devices) -> Iterator[Lost]:
        """What is not known of kernels: which call launched them."""
        kernels = devices.kernels()
        count = int(kernels.sum())
        if not count:
            return
        graphs, runs = devices.untold
        alone = int((kernels & (devices.launch < 0)).sum())
        if graphs:
            yield Lost(
                f"the operations of {graphs:,} of {count:,} kernels",
                f"they were launched as {runs:,} graphs, whose capture the trace does not show; their time counts "
                "under their own names. Profile from before the capture on to see them",
            )
        if alone:
            yield Lost(
                f"the launch of {alone:,} of {count:,} kernels", "it lies outside the trace, or was not recorded"
            )
