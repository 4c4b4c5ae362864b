"""An export's tables as events, as traces of the PyTorch profiler name them: the same reader makes tables of both.

CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY, _MEMSET, _GRAPH_TRACE   what devices executed
CUPTI_ACTIVITY_KIND_SYNCHRONIZATION                          waits on a device
CUPTI_ACTIVITY_KIND_RUNTIME                                  calls, joined by process and correlation number
NVTX_EVENTS                                                  steps, operators of emit_nvtx, modules
OSRT_API, PROFILER_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD    what else threads did
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from collectors.base import Item, Lost, Rows, Source
from collectors.device.kineto import columns
from collectors.device.kineto.columns import Batch, Stats, new_batch, new_stats
from collectors.device.kineto.texts import Texts
from collectors.device.kineto.tokens import NONE
from collectors.device.nsys.database import NULL, Database
from collectors.device.nsys.machine import Machine
from collectors.device.nsys.names import Range, call_of, copy_of, range_of, sync_of
from collectors.device.xplane.arrays import batch

_PUSH_POP, _START_END, _MARK = (
    (59, 70),
    (60, 71),
    (34, 75),
)  # kinds of NVTX events; the second of each is an extension's
_CORRELATIONS = 1 << 32  # CUPTI's numbers are 32 bits wide, and of one process
_MOST_RANGES = 1 << 16  # texts of ranges that are remembered
_GPU, _HOST = "device", "host"


@dataclass(frozen=True)
class Table:
    """How a table's rows become events: the category, the columns that name a row, and what the name is then."""

    table: str
    cat: str
    where: str
    names: tuple[str, ...]
    named: Callable[[int], str] | None = None  # of a number; else the columns refer to texts
    word: str = ""  # where no column names a row


TABLES = (
    Table("CUPTI_ACTIVITY_KIND_KERNEL", "kernel", _GPU, ("demangledName", "shortName", "mangledName"), word="kernel"),
    Table("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "kernel", _GPU, ("graphId",), lambda n: f"CUDA graph {n}", "CUDA graph"),
    Table("CUPTI_ACTIVITY_KIND_MEMCPY", "gpu_memcpy", _GPU, ("copyKind",), copy_of, "Memcpy"),
    Table("CUPTI_ACTIVITY_KIND_MEMSET", "gpu_memset", _GPU, (), word="Memset (Device)"),
    Table("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "cuda_sync", _GPU, ("syncType",), sync_of, "Synchronize"),
    Table("CUPTI_ACTIVITY_KIND_RUNTIME", "cuda_runtime", _HOST, ("nameId",), word="call of CUDA"),
    Table("OSRT_API", "os", _HOST, ("nameId",), word="call of the system"),
    Table("PROFILER_OVERHEAD", "overhead", _HOST, ("nameId",), word="profiler"),
    Table("CUPTI_ACTIVITY_KIND_OVERHEAD", "overhead", _HOST, ("nameId",), word="profiler"),
)
NVTX = "NVTX_EVENTS"


class NsysStream:
    """One export as a stream of events, as `kineto.stream.Stream` is one of a trace."""

    expected = "an export with kernels, calls or NVTX ranges"

    def __init__(self, source: Source):
        self._source = source
        self._database = Database(source)
        self.texts = Texts()
        self._strings: dict[int, int] = {}
        self._words: dict[tuple[str, int], int] = {}
        self._ranges: dict[str, tuple[Range, int]] = {}  # by text: what it tells, number of the name
        self._names_of: dict[str, int] = {}
        self._row = 0
        self._bare_steps = 0

    def __enter__(self) -> Self:
        self._database.__enter__()
        self._machine = Machine(self._database)
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    @property
    def lost(self) -> list[Lost]:
        return [*self._database.lost, *self._machine.lost]

    @property
    def beside(self) -> dict[str, Any]:
        return self._machine.beside

    def batches(self) -> Iterator[tuple[Batch, Stats]]:
        """All events, table by table; then names of threads."""
        self._need()
        for table in TABLES:
            wanted = ("start", "end", "correlationId", *table.names)
            wanted += ("deviceId", "streamId", "globalPid") if table.where == _GPU else ("globalTid",)
            if table.cat.startswith("gpu_mem"):
                wanted += ("bytes",)
            for rows in self._database.numbers(table.table, wanted):
                yield self._events(table, rows)
        yield from self._nvtx()
        yield self._thread_names(), new_stats(0)

    def _need(self) -> None:
        if not any(self._database.has(table, "start") for table in (NVTX, *(t.table for t in TABLES))):
            raise self._database.unreadable(
                ValueError("it holds none of the tables of Nsight Systems that tell of events")
            )

    def _events(self, table: Table, rows: dict[str, np.ndarray]) -> tuple[Batch, Stats]:
        made = self._timed(table.cat, rows["start"], rows["end"])
        made.name[:] = self._names(table, rows)
        number = rows["correlationId"]
        if table.where == _GPU:
            process = self._process(rows["globalPid"])
            device = self._machine.device(process, rows["deviceId"], works=table.cat != "cuda_sync")
            made.args[:, columns.DEVICE] = device
            made.args[:, columns.STREAM] = self._texts_of(
                "", rows["streamId"], lambda n: str(n) if n != NULL else "unknown"
            )
            made.pid[:] = self._texts_of("", device, str)
            made.tid[:] = self._texts_of(
                "s", rows["streamId"], lambda n: f"stream {n}" if n != NULL else "stream unknown"
            )
        else:
            process = self._process(rows["globalTid"])
            self._threads(made, rows["globalTid"])
        told = (number != NULL) & (number > 0) & (number < _CORRELATIONS)
        made.args[:, columns.CORRELATION] = np.where(
            told, self._machine.numbered(process) * _CORRELATIONS + number, NONE
        )
        return made, self._bytes(made, rows)

    def _process(self, identity: np.ndarray) -> np.ndarray:
        """The process of each row; one for all where kernels do not tell theirs."""
        told = self._database.has(TABLES[0].table, "globalPid") or not self._database.has(TABLES[0].table, "start")
        return _process(identity) if told else np.full(len(identity), -1)

    def _bytes(self, made: Batch, rows: dict[str, np.ndarray]) -> Stats:
        size = rows.get("bytes")
        if size is None:
            return new_stats(0)
        some = np.flatnonzero((size != NULL) & (size >= 0))
        stats = new_stats(len(some))
        stats.event[:], stats.name[:] = made.ordinal[some], self.texts.of("bytes")
        stats.kind[:], stats.value[:] = columns.INT, size[some]
        return stats

    def _timed(self, cat: str, start: np.ndarray, end: np.ndarray) -> Batch:
        """Whole events from start to end; a row without an end has no duration."""
        made = new_batch(len(start))
        made.ordinal[:] = np.arange(self._row, self._row + len(start))
        self._row += len(start)
        made.phase[:] = ord("X")
        made.cat[:] = self._text(cat)
        made.ts[:] = np.where(start == NULL, NONE, start)
        known = (start != NULL) & (end != NULL) & (np.abs(start) < 1 << 61) & (np.abs(end) < 1 << 61)
        made.dur[:] = np.where(known, np.where(known, end, 0) - np.where(known, start, 0), NONE)
        made.args[:] = NONE
        return made

    def _names(self, table: Table, rows: dict[str, np.ndarray]) -> np.ndarray:
        """The name of each row: of the columns the first that tells one."""
        out = np.full(len(rows["start"]), -1, np.int64)
        for column in table.names:
            lacks = np.flatnonzero((out < 0) & (rows[column] != NULL))
            if table.named:
                out[lacks] = self._texts_of(table.table, rows[column][lacks], table.named)
            else:
                out[lacks] = self._looked_up(rows[column][lacks])
        return np.where(out < 0, self._text(table.word), out)

    def _texts_of(self, kind: str, values: np.ndarray, named: Callable[[int], str]) -> np.ndarray:
        """Numbers of the texts of whole numbers."""
        unique, inverse = np.unique(values, return_inverse=True)
        found = []
        for value in unique.tolist():
            if (kind, value) not in self._words:
                self._words[kind, value] = self._text(named(value))
            found.append(self._words[kind, value])
        return np.array(found, np.int64)[inverse] if found else np.zeros(0, np.int64)

    def _looked_up(self, keys: np.ndarray) -> np.ndarray:
        """Numbers of the texts that StringIds holds under these; -1 where it holds none."""
        unique, inverse = np.unique(keys, return_inverse=True)
        for key in unique.tolist():
            if key not in self._strings:
                text = self._string(key)
                self._strings[key] = -1 if text is None else self._text(call_of(text))
        return np.array([self._strings[k] for k in unique.tolist()], np.int64)[inverse] if len(unique) else unique

    def _string(self, key: int) -> str | None:
        return self._machine.string(key)

    def _text(self, text: str) -> int:
        return self.texts.of(escaped(text))

    def _threads(self, made: Batch, thread: np.ndarray) -> None:
        made.pid[:] = self._texts_of("p", _process(thread), str)
        made.tid[:] = self._texts_of("t", thread, lambda n: str(n & 0xFFFFFF) if n != NULL else "unknown")

    def _nvtx(self) -> Iterator[tuple[Batch, Stats]]:
        """Ranges that are pushed and popped on their thread; those that start and end anywhere, on a row of their own;
        marks as instants. What only names domains, threads or categories is counted."""
        numbers = ("start", "end", "eventType", "globalTid", "textId")
        for rows, texts in self._machine.ranges(numbers):
            kind = rows["eventType"]
            ranged, marked = np.isin(kind, _PUSH_POP + _START_END), np.isin(kind, _MARK)
            ranged &= rows["start"] != NULL
            open_ended = ranged & (rows["end"] == NULL)
            self._machine.lose("NVTX ranges", "the profile ended before they did", int(open_ended.sum()))
            others = ~ranged & ~(np.isin(kind, _MARK[:1]) & (rows["start"] != NULL))
            self._machine.lose("rows of NVTX_EVENTS", "they name domains, threads or categories", int(others.sum()))
            at = np.flatnonzero((ranged & ~open_ended) | (marked & ~others))
            if len(at):
                yield (
                    self._range_events({n: v[at] for n, v in rows.items()}, [texts[i] for i in at.tolist()]),
                    new_stats(0),
                )

    def _range_events(self, rows: dict[str, np.ndarray], texts: list[str | None]) -> Batch:
        marked = np.isin(rows["eventType"], _MARK)
        made = self._timed("nvtx", rows["start"], np.where(marked, rows["start"], rows["end"]))
        made.phase[marked] = ord("i")
        self._threads(made, rows["globalTid"])
        apart = np.flatnonzero(np.isin(rows["eventType"], _START_END))
        made.tid[apart] = self._texts_of("r", rows["globalTid"][apart], lambda n: f"ranges of {n & 0xFFFFFF}")
        known = [self._range(self._looked_up_text(t, int(i))) for t, i in zip(texts, rows["textId"], strict=True)]
        made.name[:] = [name for _, name in known]
        operator, annotation = self._text("cpu_op"), self._text("user_annotation")
        for i, (what, _) in enumerate(known):
            if what.step is not None:
                made.name[i], made.cat[i] = self._step(what), annotation
            elif what.operator:
                made.cat[i] = operator
                made.args[i, columns.SEQUENCE] = NONE if what.sequence is None else what.sequence
                made.args[i, columns.DIMS] = self.texts.of(what.sizes) if what.sizes else NONE
        return made

    def _looked_up_text(self, text: str | None, key: int) -> str:
        if text is None and key != NULL:
            text = self._string(key)
        return "range of no name" if text is None else text

    def _range(self, text: str) -> tuple[Range, int]:
        """What a range's text tells, and the number of its name; of texts that recur each is looked at once."""
        found = self._ranges.get(text)
        if found is None:
            what = range_of(text)
            found = what, self._name(what.name)
            if not what.operator and len(self._ranges) < _MOST_RANGES:  # those of operators are numbered
                self._ranges[text] = found
        return found

    def _name(self, name: str) -> int:
        if name not in self._names_of and len(self._names_of) < _MOST_RANGES:
            self._names_of[name] = self._text(name)
        return self._names_of[name] if name in self._names_of else self._text(name)

    def _step(self, what: Range) -> int:
        number = what.step
        if number is None or number < 0:
            number, self._bare_steps = self._bare_steps, self._bare_steps + 1
        return self._text(f"ProfilerStep#{number}")

    def _thread_names(self) -> Batch:
        rows = list(self._machine.thread_names())
        made = new_batch(len(rows))
        made.phase[:], made.name[:], made.cat[:] = ord("M"), self._text("thread_name"), -1
        made.args[:] = NONE
        thread = np.array([t for t, _ in rows], np.int64)
        self._threads(made, thread)
        made.args[:, columns.ROW_NAME] = [self._text(name) for _, name in rows]
        return made

    def evidence(self) -> Iterator[Item]:
        """What the profiler itself complained of, once the events are read."""
        rows = list(self._machine.complaints(self._source.name))
        if rows:
            yield Rows("evidence", batch("evidence", {n: [r[n] for r in rows] for n in rows[0]}))


def _process(identity: np.ndarray) -> np.ndarray:
    """The process in a global id: hardware, machine, process and thread share its bits."""
    return np.where(identity == NULL, -1, (identity >> 24) & 0xFFFFFF)


def escaped(text: str) -> str:
    """A text as JSON writes it, as `Texts` keeps those of a trace."""
    return text.replace("\\", "\\\\").replace('"', '\\"') if "\\" in text else text
