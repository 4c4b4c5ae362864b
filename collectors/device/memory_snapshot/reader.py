"""What a memory snapshot tells, as rows: the lives of blocks, what was held over time, segments, failed allocations.

allocations      each block that was held at some time while history was recorded
stacks           each different stack of calls once, a row a frame
memory_segments  what the allocator had from the device at the snapshot, and how much of it was free
memory           bytes_in_use and pool_bytes over time; refused, device_free: allocations that failed
evidence         allocations that failed, as text
"""

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from catalog.frames import kind_of, named
from collectors.base import Item, Lost, Rows, Source
from collectors.device.memory_snapshot import reading
from collectors.device.memory_snapshot.placing import Placed, placed
from collectors.device.memory_snapshot.shapes import (
    OOM,
    REFUSED_STACKS,
    REFUSED_TEXTS,
    STACK_ROWS,
    TEXTS,
)
from collectors.device.memory_snapshot.state import State
from collectors.device.memory_snapshot.timeline import MOST_BYTES, History, of_device, samples
from errors import InputError
from errors import format as fmt
from runs.schema import SCHEMAS

ALLOCATOR = "PyTorch, snapshot"
_BATCH = 100_000
_ENDINGS = re.compile(r"(\.(pickle|pkl|snapshot))?(\.gz)?$", re.IGNORECASE)
MOST_FAILED = 1000  # allocations that failed, kept one by one
_WIDEST = 1000  # characters of a function's name or a path that are kept


class Reader:
    """Reads one source; `items` is its only use."""

    def __init__(self, source: Source):
        self._source, self._capture = source, source.index
        self._host = _ENDINGS.sub("", source.name) or source.name  # nothing in it tells the process
        self._lost: dict[tuple[str, str], int] = {}

    def items(self) -> Iterator[Item]:
        """The snapshot as rows and named losses. Raises InputError where it holds nothing of any device."""
        state = reading.read(self._source)
        at = placed(state)
        if not at.devices:
            raise InputError(
                "a memory snapshot without segments and without history",
                where=self._source.name,
                expected="a snapshot of a process that used a GPU",
                advice="Call torch.cuda.memory._record_memory_history() before the steps, _dump_snapshot after them",
            )
        state.forget()
        self._texts = _Texts(state)
        yield from self._stacks(state)
        for device in at.devices:
            yield from self._device(state, at, device)
        yield from self._losses(state, at)

    def _device(self, state: State, at: Placed, device: int) -> Iterator[Item]:
        blocks = at.blocks_of(device)
        held = blocks[at.held[blocks]]
        live = np.ascontiguousarray(np.stack([at.address[held], at.requested[held], at.size[held]], axis=1))
        segments = np.flatnonzero(at.segment_device == device)
        which = np.flatnonzero(at.event_device == device)
        reserved = int(state.rows.segment[segments, 2].sum())
        try:
            history = of_device(state, which, live, state.rows.block_stack[held], reserved)
        except OverflowError as e:
            raise InputError(str(e), where=self._source.name, expected="sizes in bytes that a device can have") from e
        self._count(
            history.odd, "events and blocks", "they contradict others: given twice, or freed without being given"
        )
        self._count(history.unsized, "events", "no size or address that can be")
        yield from self._allocations(history, device)
        yield from self._segments(state, at, segments, blocks, device)
        for kind, amount in (("bytes_in_use", history.level), ("pool_bytes", history.pool)):
            yield from self._samples(kind, *samples(history.event_ns, amount), device)
        yield from self._failed(state, which, history, device)

    def _count(self, number: int, what: str, why: str) -> None:
        if number:
            self._lost[what, why] = self._lost.get((what, why), 0) + number

    def _batch(self, table: str, device: int, rows: int, columns: dict[str, object]) -> Rows:
        fixed = {
            "capture": pa.array(np.full(rows, self._capture, np.int32)),
            "host": _same(self._host, rows),
            "device": pa.array(np.full(rows, device, np.int32)),
        }
        return Rows(table, SCHEMAS[table].batch({**fixed, **columns}))

    def _allocations(self, history: History, device: int) -> Iterator[Rows]:
        events = len(history.event_ns)
        for start in range(0, len(history.life), _BATCH):
            life = history.life[start : start + _BATCH]
            stack = history.life_stack[start : start + _BATCH]
            made, freed = life[:, 2], life[:, 3]
            columns = {
                "address": pa.array(life[:, 4]),
                "bytes": pa.array(life[:, 0]),
                "placed_bytes": _known(life[:, 1], life[:, 1] >= 0),
                "stack": _known(stack, stack >= 0),
            }
            for name, index in (("alloc", made), ("free", freed)):
                told = (index >= 0) & (index < events)
                columns[f"{name}_event"] = _known(index, told)
                ns = history.event_ns[np.where(told, index, 0)] if events else np.zeros(len(life), np.int64)
                columns[f"{name}_ns"] = _known(ns, told & (ns > 0))
            yield self._batch("allocations", device, len(life), columns)

    def _segments(
        self, state: State, at: Placed, segments: np.ndarray, blocks: np.ndarray, device: int
    ) -> Iterator[Rows]:
        count = len(at.segment_device)
        owner, size, held = at.block_segment[blocks], at.size[blocks], at.held[blocks]

        def total(which: np.ndarray, amount: np.ndarray) -> np.ndarray:
            sums = np.zeros(count, np.int64)
            np.add.at(sums, owner[which], amount[which])
            return sums[segments]

        largest = np.zeros(count, np.int64)
        np.maximum.at(largest, owner[~held], size[~held])
        rows = state.rows.segment[segments]
        columns = {
            "address": pa.array(rows[:, 1]),
            "bytes": pa.array(rows[:, 2]),
            "held_bytes": pa.array(total(held, size)),
            "requested_bytes": pa.array(total(held, at.requested[blocks])),
            "free_bytes": pa.array(total(~held, size)),
            "largest_free_bytes": pa.array(largest[segments]),
            "free_blocks": pa.array(total(~held, np.ones_like(size))),
            "held_blocks": pa.array(total(held, np.ones_like(size))),
            "expandable": pa.array(rows[:, 4] != 0),
        }
        if len(segments):
            yield self._batch("memory_segments", device, len(segments), columns)

    def _samples(self, kind: str, ns: np.ndarray, amount: np.ndarray, device: int) -> Iterator[Rows]:
        if len(ns):
            columns = {
                "ts_ns": pa.array(ns),
                "kind": _same(kind, len(ns)),
                "bytes": pa.array(amount),
                "name": _same(ALLOCATOR, len(ns)),
            }
            yield self._batch("memory", device, len(ns), columns)

    def _failed(self, state: State, which: np.ndarray, history: History, device: int) -> Iterator[Rows]:
        """Allocations that the device had no room for."""
        rows = state.rows
        found = np.flatnonzero((rows.event_action[which] == OOM) & (rows.event_size[which] >= 0))
        found = found[rows.event_size[which[found]] < MOST_BYTES]
        self._count(len(found) - len(found[:MOST_FAILED]), "failed allocations", f"the first {MOST_FAILED:,} are kept")
        for order in found[:MOST_FAILED].tolist():
            event = which[order]
            stack, ns = int(rows.event_stack[event]), int(history.event_ns[order]) or None
            asked, free = int(rows.event_size[event]), int(rows.event_addr[event])
            where = named(self._texts.frames(state, stack)) if stack >= 0 else None
            said = f"CUDA out of memory: {fmt.size(asked)} asked for on device {device}"
            said += f" at {where}" if where else ""
            said += f", {fmt.size(free)} free on the device" if 0 <= free < MOST_BYTES else ""
            said += f"; {fmt.size(int(history.level[order]))} in use of {fmt.size(int(history.pool[order]))} reserved"
            evidence = {
                "ts_ns": [ns],
                "host": [self._host],
                "device": [device],
                "cause": ["device_memory"],
                "severity": ["error"],
                "text": [said[:500]],
                "order": [order],
                "source": [self._source.name],
            }
            yield Rows("evidence", SCHEMAS["evidence"].batch(evidence))
            told = [("refused", asked)] + ([("device_free", free)] if 0 <= free < MOST_BYTES else [])
            for kind, amount in told:
                columns = {"ts_ns": [ns], "kind": [kind], "bytes": [amount], "name": [ALLOCATOR], "source": [where]}
                yield self._batch("memory", device, 1, columns)

    def _stacks(self, state: State) -> Iterator[Rows]:
        """A row for each frame of each stack, the innermost first."""
        kept = state.kept
        count = int(state.counters[STACK_ROWS])
        kinds: dict[int, str] = {}
        first = 0
        while first < count:
            last = int(np.searchsorted(kept.stack_start[: count + 1], kept.stack_start[first] + _BATCH, "right")) - 1
            last = min(max(last, first + 1), count)
            a, b = int(kept.stack_start[first]), int(kept.stack_start[last])
            lengths = np.diff(kept.stack_start[first : last + 1])
            refs = kept.refs[a:b]
            frame = np.where((refs >= 0)[:, None], kept.frame[refs], -1)
            depth = np.arange(a, b) - np.repeat(kept.stack_start[first:last], lengths)
            files = frame[:, 1]
            for code in np.unique(files).tolist():
                kinds.setdefault(code, kind_of(self._texts[code]))
            columns = {
                "capture": pa.array(np.full(b - a, self._capture, np.int32)),
                "stack": pa.array(np.repeat(np.arange(first, last), lengths)),
                "depth": pa.array(depth.astype(np.int32)),
                "function": self._texts.column(frame[:, 0]),
                "file": self._texts.column(files),
                "line": _known(frame[:, 2], frame[:, 2] > 0),
                "kind": pa.array([kinds[c] for c in files.tolist()]).dictionary_encode(),
            }
            if b > a:
                yield Rows("stacks", SCHEMAS["stacks"].batch(columns))
            first = last

    def _losses(self, state: State, at: Placed) -> Iterator[Lost]:
        c = state.counters
        self._count(at.odd, "segments and blocks", "no place or size that can be")
        self._count(int(c[REFUSED_STACKS]), "lists of frames", "more different ones, or longer ones, than are kept")
        self._count(int(c[REFUSED_TEXTS]), "names", "more different ones than are kept")
        for (what, why), number in self._lost.items():
            yield Lost(f"{number:,} {what}", why)


class _Texts:
    """The snapshot's texts, decoded when they are asked for."""

    def __init__(self, state: State):
        self._start, self._arena = state.kept.text_start, state.kept.arena
        self._count = int(state.counters[TEXTS])
        self._known: dict[int, str] = {-1: ""}

    def __getitem__(self, code: int) -> str:
        if code not in self._known:
            a, b = self._start[code : code + 2].tolist()
            text = self._arena[a:b].tobytes().decode("utf-8", "replace")
            self._known[code] = text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."
        return self._known[code]

    def column(self, codes: np.ndarray) -> pa.Array:
        """Texts by number as a column."""
        distinct, places = np.unique(codes, return_inverse=True)
        values = [self[c] for c in distinct.tolist()]
        empty = np.array([not v for v in values])[places]
        indices = pa.array(places.astype(np.int32), pa.int32(), mask=empty)
        return pa.DictionaryArray.from_arrays(indices, pa.array(values, pa.string()))

    def frames(self, state: State, stack: int) -> list[tuple[str, str, int]]:
        """(function, file, line) of a stack, the innermost first."""
        kept = state.kept
        refs = kept.refs[kept.stack_start[stack] : kept.stack_start[stack + 1]]
        rows = kept.frame[refs[refs >= 0]].tolist()
        return [(self[name], self[file], line) for name, file, line in rows]


def _same(text: str, rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32), pa.int32()), pa.array([text], pa.string()))


def _known(values: np.ndarray, told: np.ndarray) -> pa.Array:
    """A column that is null where it is not told."""
    return pa.array(values, mask=~told)
