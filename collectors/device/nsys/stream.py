"""An export's tables as events, as traces of the PyTorch profiler name them: the same reader makes tables of both.

CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY, _MEMSET, _GRAPH_TRACE,
    _MEM_DECOMPRESS                                          what devices executed
CUPTI_ACTIVITY_KIND_SYNCHRONIZATION                          waits on a device
CUPTI_ACTIVITY_KIND_RUNTIME                                  calls, joined by process and correlation number
NVTX_EVENTS                                                  steps, operators of emit_nvtx, modules
CUDA_GRAPH_NODE_EVENTS                                       nodes of graphs being made
OSRT_API, PROFILER_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD    what else threads did

Rows of other tables that tell a time are counted as lost, but for metrics and what the profiler complains of.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from collectors.base import Item, Lost, Rows, Source
from collectors.device.kineto import columns
from collectors.device.kineto.columns import Batch, Stats, new_stats
from collectors.device.kineto.tokens import NONE
from collectors.device.made import Maker
from collectors.device.nccl import CALL, Calls, annotations, fields_of
from collectors.device.nsys.graphs import TABLE as NODES
from collectors.device.nsys.graphs import GraphNodes, is_made
from collectors.device.nsys.machine import Machine
from collectors.device.nsys.metrics import SAMPLES as METRICS
from collectors.device.nsys.metrics import Clock, Metrics
from collectors.device.nsys.names import call_of, copy_of, sync_of
from collectors.device.nsys.sampled import EVENTS, Sampled
from collectors.device.xplane.arrays import batch
from collectors.ingesting.folders import TableFolder
from collectors.reading.parquet_tables import ParquetTables
from collectors.reading.sqlite import NULL, Database

_PUSH_POP, _START_END, _MARK = (
    (59, 70),
    (60, 71),
    (34, 75),
)  # kinds of NVTX events; the second of each is an extension's
_CORRELATIONS = 1 << 32  # CUPTI's numbers are 32 bits wide, and of one process
_FIELDS = 1 << 14  # of payloads
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
    Table("CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS", "gpu_memcpy", _GPU, (), word="Memory decompression"),
    Table("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "cuda_sync", _GPU, ("syncType",), sync_of, "Synchronize"),
    Table("CUPTI_ACTIVITY_KIND_RUNTIME", "cuda_runtime", _HOST, ("nameId",), word="call of CUDA"),
    Table(NODES, "cuda_runtime", _HOST, ("nameId",), word="node of a graph"),
    Table("OSRT_API", "os", _HOST, ("nameId",), word="call of the system"),
    Table("PROFILER_OVERHEAD", "overhead", _HOST, ("nameId",), word="profiler"),
    Table("CUPTI_ACTIVITY_KIND_OVERHEAD", "overhead", _HOST, ("nameId",), word="profiler"),
)
NVTX = "NVTX_EVENTS"
_READ = frozenset({NVTX, METRICS, EVENTS, "DIAGNOSTIC_EVENT", *(t.table for t in TABLES)})
_TIMES = {"start", "timestamp"}
_NO_STREAM = (1 << 40) - 1
_COUNTED = 1 << 26  # rows of tables that are not read: a file may name one place many times
_LAUNCH = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")


def _opened(source: Source) -> Database | ParquetTables:
    """The export's tables: a database's, or those that lie as a file each in a folder."""
    expected, advice = "a whole export of Nsight Systems", "Export it again with `nsys export --type "
    if isinstance(source, TableFolder):
        return ParquetTables(source.name, dict(source.tables), expected, f"{advice}parquetdir`")
    return Database(source, expected, f"{advice}sqlite`")


class NsysStream:
    """One export as a stream of events, as `kineto.stream.Stream` is one of a trace."""

    expected = "an export with kernels, calls or NVTX ranges"

    def __init__(self, source: Source):
        self._source = source
        self._database = _opened(source)
        self._made = Maker()
        self.texts = self._made.texts
        self._strings: dict[int, int] = {}

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
        self._nodes = GraphNodes(self._database, self._process)
        for table in TABLES:
            wanted = ("start", "end", "correlationId", *table.names)
            wanted += ("deviceId", "streamId", "globalPid") if table.where == _GPU else ("globalTid",)
            if table.cat.startswith("gpu_mem"):
                wanted += ("bytes",)
            if table.table == TABLES[0].table:
                wanted += _LAUNCH
            if table.table == NODES or table.where == _GPU:
                wanted += ("graphNodeId",)
            if table.table == NODES:
                wanted += ("originalGraphNodeId",)
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
        made = self._made.timed(table.cat, rows["start"], rows["end"])
        made.name[:] = self._names(table, rows)
        number = rows["correlationId"]
        if table.where == _GPU:
            process = self._process(rows["globalPid"])
            device = self._machine.device(process, rows["deviceId"], works=table.cat != "cuda_sync")
            made.args[:, columns.DEVICE] = device
            made.args[:, columns.STREAM] = self._made.texts_of(
                "", rows["streamId"], lambda n: str(n) if n != NULL else "unknown"
            )
            made.pid[:] = self._made.texts_of("", device, str)
            stream = rows["streamId"]
            stream = np.where((stream < 0) | (stream > _NO_STREAM), _NO_STREAM, stream)
            lines = self._machine.numbered(process) * (_NO_STREAM + 1) + stream
            made.tid[:] = self._made.texts_of("s", lines, _line)
            made.args[:, columns.EXTERNAL] = self._nodes.of(process, rows["graphNodeId"])
            self._shapes(made, rows)
        else:
            process = self._process(rows["globalTid"])
            self._threads(made, rows["globalTid"])
        told = (number != NULL) & (number > 0) & (number < _CORRELATIONS)
        made.args[:, columns.CORRELATION] = np.where(
            told, self._machine.numbered(process) * _CORRELATIONS + number, NONE
        )
        if table.table == NODES:
            number = self._nodes.of(process, rows["graphNodeId"])
            made.args[:, columns.CORRELATION] = np.where(is_made(rows), number, NONE)
        return made, self._made.amounts(made, "bytes", rows.get("bytes"))

    def _shapes(self, made: Batch, rows: dict[str, np.ndarray]) -> None:
        """Grid and block of each kernel, as a trace of PyTorch writes them."""
        if _LAUNCH[0] not in rows:
            return
        for column, names in ((columns.GRID, _LAUNCH[:3]), (columns.BLOCK, _LAUNCH[3:])):
            x, y, z = (rows[name] for name in names)
            told = (x > 0) & (x < 1 << 31) & (y > 0) & (y < 1 << 16) & (z > 0) & (z < 1 << 16)
            at = np.flatnonzero(told)
            sizes = x[at] | y[at] << 31 | z[at] << 47
            made.args[at, column] = self._made.texts_of("launch", sizes, _sizes)

    def _process(self, identity: np.ndarray) -> np.ndarray:
        """The process of each row; one for all where kernels do not tell theirs."""
        told = self._database.has(TABLES[0].table, "globalPid") or not self._database.has(TABLES[0].table, "start")
        return _process(identity) if told else np.full(len(identity), -1)

    def _names(self, table: Table, rows: dict[str, np.ndarray]) -> np.ndarray:
        """The name of each row: of the columns the first that tells one."""
        out = np.full(len(rows["start"]), -1, np.int64)
        for column in table.names:
            lacks = np.flatnonzero((out < 0) & (rows[column] != NULL))
            if table.named:
                out[lacks] = self._made.texts_of(table.table, rows[column][lacks], table.named)
            else:
                out[lacks] = self._looked_up(rows[column][lacks])
        return np.where(out < 0, self._made.text(table.word), out)

    def _looked_up(self, keys: np.ndarray) -> np.ndarray:
        """Numbers of the texts that StringIds holds under these; -1 where it holds none."""
        unique, inverse = np.unique(keys, return_inverse=True)
        for key in unique.tolist():
            if key not in self._strings:
                text = self._machine.string(key)
                self._strings[key] = -1 if text is None else self._made.text(call_of(text))
        return np.array([self._strings[k] for k in unique.tolist()], np.int64)[inverse] if len(unique) else unique

    def _threads(self, made: Batch, thread: np.ndarray) -> None:
        made.pid[:] = self._made.texts_of("p", _process(thread), str)
        made.tid[:] = self._made.texts_of("t", thread, lambda n: str(n & 0xFFFFFF) if n != NULL else "unknown")

    def _nvtx(self) -> Iterator[tuple[Batch, Stats]]:
        """Ranges that are pushed and popped on their thread; those that start and end anywhere, on a row of their own;
        marks as instants. What only names domains, threads or categories is counted."""
        numbers = ("start", "end", "eventType", "globalTid", "textId")
        columns_of_fields = ("domainId", "schemaId", "type", "name", "offset")
        fields = self._database.rows("NVTX_PAYLOAD_SCHEMA_ENTRIES", columns_of_fields, _FIELDS)
        calls = Calls(fields_of(fields))
        for rows, texts, payloads in self._machine.ranges(numbers):
            kind = rows["eventType"]
            ranged, marked = np.isin(kind, _PUSH_POP + _START_END), np.isin(kind, _MARK)
            ranged &= rows["start"] != NULL
            open_ended = ranged & (rows["end"] == NULL)
            self._machine.lose("NVTX ranges", "the profile ended before they did", int(open_ended.sum()))
            others = ~ranged & ~(np.isin(kind, _MARK[:1]) & (rows["start"] != NULL))
            self._machine.lose("rows of NVTX_EVENTS", "they name domains, threads or categories", int(others.sum()))
            kept = (ranged & ~open_ended) | (marked & ~others)
            at = np.flatnonzero(kept).tolist()
            known = {i: self._looked_up_text(texts[i], int(rows["textId"][i])) for i in at}
            of_nccl = [i for i in at if CALL.match(known[i]) and ranged[i] and not calls.full]
            for i in of_nccl:
                start, end, thread = (int(rows[c][i]) for c in ("start", "end", "globalTid"))
                calls.add(start, end, thread, known[i], payloads[i])
            kept[of_nccl] = False
            at = np.flatnonzero(kept)
            if len(at):
                told = [known[i] for i in at.tolist()]
                yield self._range_events({n: v[at] for n, v in rows.items()}, told), new_stats(0)
        told_calls = list(calls.told())
        made = annotations(self._made, told_calls)
        self._threads(made, np.array([c.thread for c in told_calls], np.int64))
        yield made, new_stats(0)

    def _range_events(self, rows: dict[str, np.ndarray], texts: list[str]) -> Batch:
        marked = np.isin(rows["eventType"], _MARK)
        made = self._made.timed("nvtx", rows["start"], np.where(marked, rows["start"], rows["end"]))
        made.phase[marked] = ord("i")
        self._threads(made, rows["globalTid"])
        apart = np.flatnonzero(np.isin(rows["eventType"], _START_END))
        made.tid[apart] = self._made.texts_of("r", rows["globalTid"][apart], lambda n: f"ranges of {n & 0xFFFFFF}")
        self._made.ranged(made, texts)
        return made

    def _looked_up_text(self, text: str | None, key: int) -> str:
        if text is None and key != NULL:
            text = self._machine.string(key)
        return "range of no name" if text is None else text

    def _thread_names(self) -> Batch:
        rows = list(self._machine.thread_names())
        made = self._made.names("thread_name", len(rows))
        thread = np.array([t for t, _ in rows], np.int64)
        self._threads(made, thread)
        made.args[:, columns.ROW_NAME] = [self._made.text(name) for _, name in rows]
        return made

    def besides(self) -> Iterator[Item]:
        """Metrics of GPUs, and what the profiler itself complained of, once the events are read."""
        clock = Clock(self.beside["baseTimeNanoseconds"] or 0)
        yield from Metrics(self._database, clock, self._source.name).items()
        yield from Sampled(self._database, clock, self._source.name).items()
        yield from self._unread()
        rows = list(self._machine.complaints(self._source.name))
        if rows:
            yield Rows("evidence", batch("evidence", {n: [r[n] for r in rows] for n in rows[0]}))

    def _unread(self) -> Iterator[Lost]:
        """Rows of tables that tell times and are not read."""
        left = _COUNTED
        for table in sorted(self._database.columns):
            if table in _READ or _TIMES.isdisjoint(self._database.columns[table]) or left <= 0:
                continue
            count = self._database.count(table)
            left -= count
            if count:
                yield Lost(f"{count:,} row{'' if count == 1 else 's'} of {table[:80]}", "this table is not read")


def _line(packed: int) -> str:
    """A stream, which is of one process: others on the same device number theirs for themselves."""
    process, stream = divmod(packed, _NO_STREAM + 1)
    name = f"stream {stream}" if stream != _NO_STREAM else "stream unknown"
    return f"{name} of process {process}" if process else name


def _sizes(packed: int) -> str:
    return f"[{packed & (1 << 31) - 1}, {packed >> 31 & 0xFFFF}, {packed >> 47}]"


def _process(identity: np.ndarray) -> np.ndarray:
    """The process in a global id: hardware, machine, process and thread share its bits."""
    return np.where(identity == NULL, -1, (identity >> 24) & 0xFFFFFF)
