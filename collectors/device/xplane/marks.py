"""Host events that mean more than their duration: steps, waits for data, samples of memory."""

import re
from collections.abc import Iterator

import numpy as np

from collectors.base import Item, Lost, Rows, Source
from collectors.device.xplane.arrays import batch
from collectors.device.xplane.batches import Batches
from collectors.device.xplane.collectives import StepSpans
from collectors.device.xplane.planes import Names, Numbers
from collectors.device.xplane.tables import MARK_STEP, N_MARKS, TEXT

_DATA, _MEMORY = 2, 3
MARKS = {b"data_loading": _DATA, b"MemoryAllocation": _MEMORY, b"MemoryDeallocation": _MEMORY}
# Stats of a memory event: the kind it becomes in `memory`, and where its device stands.
_MEMORY_KINDS = {
    b"bytes_allocated": "bytes_in_use",
    b"bytes_reserved": "bytes_reserved",
    b"bytes_available": "bytes_available",
    b"peak_bytes_in_use": "peak_bytes_in_use",
}
_MEMORY_DEVICE = (b"index_on_host", b"device_ordinal")
_ALLOCATOR = b"allocator_name"
_GPU_ALLOCATOR = re.compile(r"GPU_(\d{1,4})_bfc$")
_BATCH = 1 << 16
_HELD_SHARE = 0.5  # of devices' work that marks must hold, to tell how long steps took


class Marked:
    """Gathers marked events while lines are read."""

    def __init__(self, source: Source):
        self._source = source
        self._steps: list[tuple[int, int, int]] = []  # start ps, duration ps, step
        self._data: list[tuple[int, int]] = []
        self._memory: list[tuple[int, int | None, str, int, str | None]] = []
        self._covered: tuple[np.ndarray, np.ndarray] | None = None  # see `_coverage`
        self._work, self._held = 0.0, 0.0  # ps of devices' work since the first step, and of that within steps
        self._numbers: dict[bytes, int] = {}
        self._texts: Numbers | None = None

    def plane(self, names: Names, numbers: Numbers) -> None:
        """Must be called before the lines of a plane are read."""
        self._texts = numbers
        wanted = (*_MEMORY_KINDS, *_MEMORY_DEVICE, _ALLOCATOR)
        present = set(names.stat_names.values())
        self._numbers = {n: numbers.text(n) for n in wanted if n in present}

    def take(self, batches: Batches) -> tuple[int, set[int]]:
        """Takes what the decoder marked since the last call: how many events, and which operations are steps."""
        n = int(batches.counters[N_MARKS])
        events = batches.events
        steps = set()
        for row, op, first, last, mark, step in batches.marks.rows[:n].tolist():
            start, dur = int(events.start[row]), int(events.dur[row])
            if mark == MARK_STEP:
                self._steps.append((start, dur, step))
                steps.add(op)
            elif mark == _DATA:
                self._data.append((start, dur))
            elif mark == _MEMORY:
                self._take_memory(batches, start, first, last)
        batches.counters[N_MARKS] = 0
        return n, steps

    def _take_memory(self, batches: Batches, start: int, first: int, last: int) -> None:
        stats = batches.stats
        found = {}
        for name, kind, value, word in zip(
            *(column[first:last].tolist() for column in (stats.name, stats.kind, stats.value, stats.text)), strict=True
        ):
            found[name] = batches.op_text_now(word) if kind == TEXT else value
        places = [self._numbers.get(name, -2) for name in _MEMORY_DEVICE]
        device = next((found[place] for place in places if place in found), None)
        allocator = found.get(self._numbers.get(_ALLOCATOR, -2))
        if device is None and isinstance(allocator, str) and (match := _GPU_ALLOCATOR.match(allocator)):
            device = int(match[1])
        for name, kind in _MEMORY_KINDS.items():
            value = found.get(self._numbers.get(name, -2))
            if isinstance(value, int):
                self._memory.append(
                    (
                        start,
                        device if isinstance(device, int) and abs(device) < 1 << 31 else None,
                        kind,
                        value,
                        allocator if isinstance(allocator, str) else None,
                    )
                )

    def worked(self, start: np.ndarray, dur: np.ndarray) -> None:
        """Notes what a device did; lines of the host must have been read before."""
        if not self._steps:
            return
        if self._covered is None:
            self._covered = _coverage(self._steps)
        at, covered = self._covered
        since = np.maximum(start, at[0])
        end = np.maximum(start + dur, since)
        self._work += float((end - since).sum())
        self._held += float((np.interp(end, at, covered) - np.interp(since, at, covered)).sum())

    def step_rows(self, device_steps: StepSpans, base_ns: int, host: str | None) -> tuple[list[Item], StepSpans]:
        """Rows of `steps`, and the spans to find an event's step by.

        A device's own `Steps` line is closer to the truth than the host's annotation, which may end before the
        device has begun; with several devices a step lasts from the first start to the last end, as far as they took
        it at one time (see `_taken`). Marks of a host that hands work over and goes on at once last as long as that
        took: by them no step is told.
        """
        ahead = self._held < _HELD_SHARE * self._work
        for start, dur, step in sorted(self._steps) if not ahead else ():
            device_steps.add(None, start, dur, step)
        taken: dict[int, list[tuple[int, int, int]]] = {}
        for device, spans in device_steps.spans.items():
            if device is None:
                continue
            for start, end, step in spans:
                taken.setdefault(step, []).append((start, end, device))
        rows = [(start, end, step, device) for step, spans in taken.items() for start, end, device in _taken(spans)]
        if not rows and ahead:
            return [self._ran_ahead()], device_steps
        rows = rows or [(start, start + dur, step, None) for start, dur, step in self._steps]
        rows.sort(key=lambda row: row[:3])
        columns = {
            "step": [step for _, _, step, _ in rows],
            "host": [host] * len(rows),
            "device": [device for *_, device in rows],
            "start_ns": [base_ns + start // 1000 for start, *_ in rows],
            "dur_ns": [round((end - start) / 1000) for start, end, *_ in rows],
            "capture": [self._source.index] * len(rows),
            "order": list(range(len(rows))),
            "source": ["xplane"] * len(rows),
        }
        return ([Rows("steps", batch("steps", columns))] if rows else []), device_steps

    def _ran_ahead(self) -> Lost:
        return Lost(
            f"{len(self._steps):,} steps",
            f"the host's marks of them hold {100 * self._held / self._work:.0f} % of what devices did since the first, "
            "so how long steps took is not told: the host may have gone on before the work that it handed over was "
            "done. A step that waits for its result within its mark (`jax.block_until_ready`) would tell",
        )

    def other_rows(self, base_ns: int, host: str | None) -> Iterator[Rows]:
        """Rows of `lifecycle` (waits for data) and `memory`."""
        data = sorted(self._data)
        if data:
            yield Rows(
                "lifecycle",
                batch(
                    "lifecycle",
                    {
                        "kind": ["data_loading"] * len(data),
                        "start_ns": [base_ns + start // 1000 for start, _ in data],
                        "end_ns": [base_ns + (start + dur) // 1000 for start, dur in data],
                        "host": [host] * len(data),
                        "order": list(range(len(data))),
                        "source": ["xplane"] * len(data),
                    },
                ),
            )
        samples = sorted(self._memory, key=lambda s: s[0])
        for at in range(0, len(samples), _BATCH):
            part = samples[at : at + _BATCH]
            yield Rows(
                "memory",
                batch(
                    "memory",
                    {
                        "capture": [self._source.index] * len(part),
                        "host": [host] * len(part),
                        "device": [s[1] for s in part],
                        "ts_ns": [base_ns + s[0] // 1000 for s in part],
                        "kind": [s[2] for s in part],
                        "bytes": [s[3] for s in part],
                        "name": [s[4] for s in part],
                    },
                ),
            )


def _coverage(marks: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Times at which marks begin and end, in order, and how much of the time until each lies within marks."""
    start, dur, _ = np.array(sorted(marks), np.int64).T
    end = np.maximum.accumulate(start + dur)
    start[1:] = np.maximum(start[1:], end[:-1])
    end = np.maximum(start, end)
    total = np.cumsum(end - start)
    return np.stack([start, end], axis=1).ravel(), np.stack([total - (end - start), total], axis=1).ravel()


def _taken(spans: list[tuple[int, int, int]]) -> list[tuple[int, int, int | None]]:
    """(start, end, device) of each time that a step was taken, from the same of its devices; None: of all of them.

    Spans that meet are one. Apart from each other they are the same step of devices that were captured at different
    times, each its own; or, where a device comes again, the step taken again.
    """
    met: list[tuple[int, int, set[int]]] = []
    for start, end, device in sorted(spans):
        if met and start < met[-1][1]:
            met[-1][2].add(device)
            met[-1] = (met[-1][0], max(met[-1][1], end), met[-1][2])
        else:
            met.append((start, end, {device}))
    if len(met) > 1 and sum(len(devices) for *_, devices in met) == len(set().union(*(d for *_, d in met))):
        return list(spans)
    return [(start, end, None) for start, end, _ in met]
