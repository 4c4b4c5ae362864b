"""The JSON of rocprofv3 as events: the same reader makes tables of them as of a trace of PyTorch.

Under `rocprofiler-sdk-tool` stands a list of processes, each with `buffer_records` by kind:
kernel_dispatch, memory_copy           what devices executed, joined with calls by the number of the call
hip_api, hsa_api, rccl_api, ...        calls
marker_api                             ROCTX ranges and marks, their texts under `strings`
memory_allocation, scratch_memory      memory taken and given back
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np

from collectors.base import Lost, Source
from collectors.device.kineto.columns import Batch, Stats
from collectors.device.rocm.filling import EXPECTED, Filling
from collectors.device.rocm.names import OTHER, RANGE, RCCL, call_kind, copy_name
from collectors.device.rocm.rocprofv3_process import Process, numbers
from collectors.device.rocm.walk import Ended, Walk
from collectors.reading.sqlite import NULL

_TOOL = "rocprofiler-sdk-tool"
Made = Iterator[tuple[Batch, Stats]]
Records = list[dict[str, Any]]


class Rocprofv3Stream:
    """One file as a stream of events, as `kineto.stream.Stream` is one of a trace."""

    expected = f"JSON of rocprofv3 with {EXPECTED}"

    def __init__(self, source: Source):
        self._walk = Walk(source)
        self._fill = Filling()
        self.texts = self._fill.maker.texts
        self._counted: Counter[tuple[str, str]] = Counter()
        self._machine = ""
        self._texts_of: dict[tuple[Any, ...], int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._walk.close()

    @property
    def beside(self) -> dict[str, Any]:
        return self._fill.beside(self._machine or None)

    @property
    def lost(self) -> list[Lost]:
        told = [Lost(f"{count:,} {what}", why) for (what, why), count in self._counted.items() if count]
        return [*self._walk.lost, *told]

    def batches(self) -> Made:
        """All events, process by process, in the order of the file."""
        try:
            for key in self._walk.members():
                if key != _TOOL or self._walk.peek() != b"[":
                    self._walk.skip()
                    continue
                for number, _ in enumerate(self._walk.items()):
                    yield from self._process(Process(number))
        except Ended:
            self._walk.lost.append(Lost("the end of the file", "it ends early, or is damaged", self._walk.at))
        yield self._fill.rccl()

    def _process(self, process: Process) -> Made:
        for key in self._walk.members():
            if key == "metadata":
                process.told(self._walk.value())
                self._machine = self._machine or process.machine
            elif key == "agents":
                process.agents(self._walk.value(), self._fill.agents)
            elif key == "strings":
                process.strings(self._walk.value())
            elif key == "kernel_symbols" and self._walk.peek() == b"[":
                for symbols in self._walk.records():
                    process.kernels(symbols)
            elif key == "buffer_records" and self._walk.peek() == b"{":
                yield from self._records(process)
            elif key == "callback_records" and self._walk.peek() == b"{":
                self._unread()
            else:
                self._walk.skip()
        if process.program and process.pid != NULL:
            yield self._fill.thread_names([(process.pid, process.pid, process.program)])

    def _records(self, process: Process) -> Made:
        makers: dict[str, Callable[[Process, Records], Made]] = {
            "kernel_dispatch": self._kernels,
            "memory_copy": self._copies,
        }
        elsewhere = process.machine not in (self._machine, "")
        for kind in self._walk.members():
            if self._walk.peek() != b"[":
                self._walk.skip()
                continue
            for records in self._walk.records():
                if elsewhere:
                    why = f"its clock began at another time than that of {self._machine}; ingest the file of each host"
                    self._counted[f"records of host {process.machine}", why] += len(records)
                else:
                    yield from makers.get(kind, self._calls)(process, self._timed(kind, records))

    def _unread(self) -> None:
        """Counts what stands in records of calls back, which no table holds: counters of hardware, by dispatch."""
        for kind in self._walk.members():
            if self._walk.peek() != b"[":
                self._walk.skip()
                continue
            for records in self._walk.records():
                self._counted[f"records of {kind[:80]}", "they are of calls back, which are not read"] += len(records)

    def _timed(self, kind: str, records: Records) -> Records:
        """The records that tell a time; samples and counters tell none of their own."""
        found = [r for r in records if "start_timestamp" in r and "end_timestamp" in r]
        self._counted[f"records of {kind[:80]}", "they tell no time from which to which"] += len(records) - len(found)
        return found

    def _kernels(self, process: Process, records: Records) -> Made:
        info = "dispatch_info"
        agents = process.nodes(numbers(records, info, "agent_id", "handle"))
        kernels = numbers(records, info, "kernel_id")
        yield self._fill.executed(
            "kernel",
            _times(records),
            self._named(("kernel", process.number), kernels, process.kernel),
            self._fill.agents.numbers(process.machine, agents),
            self._fill.lines(
                numbers(records, "stream_id", "handle"), numbers(records, info, "queue_id", "handle"), process.number
            ),
            self._correlation(process, records),
        )

    def _copies(self, process: Process, records: Records) -> Made:
        """Copies are a device's: of the one that received, else of the one that sent; between CPUs, the host's."""
        to, of = (process.nodes(numbers(records, side, "handle")) for side in ("dst_agent_id", "src_agent_id"))
        on_to, on_of = (self._fill.agents.on_gpu(process.machine, side) for side in (to, of))
        moved = on_to | on_of | ((to == NULL) & (of == NULL))
        yield from self._calls(process, [r for r, m in zip(records, moved.tolist(), strict=True) if not m])
        at = np.flatnonzero(moved)
        if not len(at):
            return
        agent = np.where(on_to, to, of)[at]
        records = [records[i] for i in at.tolist()]
        _, names = self._called(process, records)
        yield self._fill.executed(
            "gpu_memcpy",
            _times(records),
            names,
            self._fill.agents.numbers(process.machine, agent),
            self._fill.lines(numbers(records, "stream_id", "handle"), np.full(len(records), NULL), process.number),
            self._correlation(process, records),
            numbers(records, "bytes"),
        )

    def _calls(self, process: Process, records: Records) -> Made:
        if not records:
            return
        cat, name = self._called(process, records)
        ranged = cat == self._fill.maker.text(RANGE)
        at = np.flatnonzero(ranged)
        if len(at):
            yield self._ranges(process, [records[i] for i in at.tolist()], name[at])
        whose = np.full(len(records), process.pid), numbers(records, "thread_id")
        held = self._fill.hold_rccl(cat == self._fill.maker.text(RCCL), _times(records), name, whose)
        at = np.flatnonzero(~ranged & ~held)
        records = [records[i] for i in at.tolist()]
        yield self._fill.called(
            cat[at],
            _times(records),
            name[at],
            np.full(len(records), process.pid),
            numbers(records, "thread_id"),
            self._correlation(process, records),
            numbers(records, "allocation_size"),
        )

    def _ranges(self, process: Process, records: Records, named: np.ndarray) -> tuple[Batch, Stats]:
        calls = numbers(records, "correlation_id", "internal").tolist()
        texts = [process.marker(c) or self.texts[n] for c, n in zip(calls, named.tolist(), strict=True)]
        whose = np.full(len(records), process.pid), numbers(records, "thread_id")
        return self._fill.ranged(_times(records), texts, *whose)

    def _called(self, process: Process, records: Records) -> tuple[np.ndarray, np.ndarray]:
        """(number of the text of the category of each record, of its name)."""
        pairs = np.stack([numbers(records, "kind"), numbers(records, "operation")], axis=1)
        unique, inverse = np.unique(pairs, axis=0, return_inverse=True)
        found = []
        for kind, operation in unique.tolist():
            category, name = process.call(kind, operation)
            cat = OTHER if "MEMORY" in category else call_kind(category, name)
            named = copy_name(name) if "MEMORY_COPY" in category else name
            found.append((self._fill.maker.text(cat), self._fill.maker.text(named)))
        table = np.array(found, np.int64).reshape(-1, 2)[inverse.reshape(-1)]
        return table[:, 0], table[:, 1]

    def _correlation(self, process: Process, records: Records) -> np.ndarray:
        return self._fill.joined(process.number, numbers(records, "correlation_id", "internal"))

    def _named(self, of: tuple[str, int], keys: np.ndarray, named: Callable[[int], str]) -> np.ndarray:
        """Numbers of the texts of whole numbers, of one process."""
        unique, inverse = np.unique(keys, return_inverse=True)
        found = []
        for key in unique.tolist():
            if (*of, key) not in self._texts_of:
                self._texts_of[*of, key] = self._fill.maker.text(named(key))
            found.append(self._texts_of[*of, key])
        return np.array(found, np.int64)[inverse.reshape(-1)] if found else np.zeros(0, np.int64)


def _times(records: Records) -> tuple[np.ndarray, np.ndarray]:
    return numbers(records, "start_timestamp"), numbers(records, "end_timestamp")
