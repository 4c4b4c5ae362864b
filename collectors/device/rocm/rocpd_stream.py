"""A database of rocpd as events: the same reader makes tables of them as of a trace of PyTorch.

rocpd_kernel_dispatch, rocpd_memory_copy   what devices executed, joined with calls by the number of the call
rocpd_region                               calls of HIP, HSA and RCCL, and ROCTX ranges
rocpd_sample                               marks
rocpd_memory_allocate                      memory taken and given back
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np

from collectors.base import Lost, Rows, Source
from collectors.device.kineto.columns import Batch, Stats
from collectors.device.rocm.filling import EXPECTED, Filling
from collectors.device.rocm.names import OTHER, RANGE, RCCL, call_kind, copy_name
from collectors.device.rocm.rocpd_tables import READ, Tables, processes, symbol, unknown
from collectors.reading.settings import Settings
from collectors.reading.sqlite import NULL, Database
from collectors.reading.textlog import Tally

_TIMES = ("start", "end")
_WHOSE = ("pid", "tid")
Made = Iterator[tuple[Batch, Stats]]


class RocpdStream:
    """One database as a stream of events, as `kineto.stream.Stream` is one of a trace."""

    expected = f"a database of rocprofv3 with {EXPECTED}"

    def __init__(self, source: Source):
        self._database = Database(
            source, "a whole database of rocprofv3", "Profile again with `rocprofv3 --output-format rocpd`"
        )
        self._fill = Filling()
        self.texts = self._fill.maker.texts
        self._counted: Counter[tuple[str, str]] = Counter()
        self._machine = ""
        self._texts_of: dict[tuple[str, int, int], int] = {}
        self._tally = Tally()
        self._settings = Settings(source, self._tally)

    def __enter__(self) -> Self:
        self._database.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    @property
    def beside(self) -> dict[str, Any]:
        return self._fill.beside(self._machine or None)

    @property
    def lost(self) -> list[Lost]:
        told = [Lost(f"{count:,} {what}", why) for (what, why), count in self._counted.items() if count]
        return [*self._database.lost, *told, *self._tally.lost()]

    def besides(self) -> Iterator[Rows]:
        """Settings of the environments of processes, once the events are read."""
        yield from self._settings.rest()

    def batches(self) -> Made:
        """All events, process by process."""
        suffixes = processes(self._database)
        if not suffixes:
            raise self._database.unreadable(ValueError(f"it holds none of the tables {', '.join(READ)} of rocpd"))
        for number, suffix in enumerate(suffixes):
            tables = Tables(self._database, suffix, number, self._fill)
            if self._is_elsewhere(tables):
                continue
            yield from self._process(tables)
            for count, what, why in tables.left_out():
                self._counted[what, why] += count
        for table in unknown(self._database):
            self._counted[f"rows of {table[:80]}", "this table is not known"] += self._database.count(table)

    def _is_elsewhere(self, tables: Tables) -> bool:
        """Whether a process ran on another host than those before. Each host counts its time from its own start, so
        that events of two cannot stand in one capture."""
        self._machine = self._machine or tables.machine
        if tables.machine in (self._machine, ""):
            return False
        why = f"its clock began at another time than that of {self._machine}; ingest the database of each host"
        for table in READ:
            self._counted[f"rows of host {tables.machine}", why] += self._database.count(tables.name(table))
        return True

    def _process(self, tables: Tables) -> Made:
        yield from self._kernels(tables)
        yield from self._copies(tables)
        yield from self._regions(tables)
        yield self._fill.rccl()
        yield from self._samples(tables)
        yield from self._allocations(tables)
        yield self._fill.thread_names(list(tables.thread_names()))
        for variables in tables.environments():
            self._settings.environment(variables, tables.machine or None)

    def _kernels(self, tables: Tables) -> Made:
        columns = (*_TIMES, "agent_id", "queue_id", "stream_id", "kernel_id")
        named = symbol(self._database, tables)
        for rows in tables.rows("kernel_dispatch", columns):
            yield self._fill.executed(
                "kernel",
                (rows["start"], rows["end"]),
                self._named(tables, "kernel", rows["kernel_id"], lambda k: named(k) or f"kernel {k}"),
                self._fill.agents.numbers(tables.machine, rows["agent_id"]),
                self._fill.lines(rows["stream_id"], rows["queue_id"], tables.number),
                self._fill.joined(tables.number, tables.launched_by(rows["stack_id"])),
            )

    def _copies(self, tables: Tables) -> Made:
        """Copies are a device's: of the one that received, else of the one that sent; between CPUs, the host's."""
        columns = (*_TIMES, *_WHOSE, "name_id", "dst_agent_id", "src_agent_id", "size", "queue_id", "stream_id")
        for rows in tables.rows("memory_copy", columns):
            to, of = (self._fill.agents.on_gpu(tables.machine, rows[c]) for c in ("dst_agent_id", "src_agent_id"))
            agent = np.where(to, rows["dst_agent_id"], rows["src_agent_id"])
            name = self._named(tables, "copy", rows["name_id"], lambda k: copy_name(tables.string(k) or "Memcpy"))
            correlation = self._fill.joined(tables.number, tables.launched_by(rows["stack_id"]))
            known = (rows["dst_agent_id"] != NULL) | (rows["src_agent_id"] != NULL)
            at = np.flatnonzero(to | of | ~known)
            yield self._fill.executed(
                "gpu_memcpy",
                (rows["start"][at], rows["end"][at]),
                name[at],
                self._fill.agents.numbers(tables.machine, agent[at]),
                self._fill.lines(rows["stream_id"][at], rows["queue_id"][at], tables.number),
                correlation[at],
                rows["size"][at],
            )
            at = np.flatnonzero(~to & ~of & known)
            yield self._host(rows, at, np.full(len(at), self._fill.maker.text(OTHER)), name[at], rows["size"][at])

    def _host(
        self, rows: dict[str, np.ndarray], at: np.ndarray, cat: np.ndarray, name: np.ndarray, size: np.ndarray
    ) -> tuple[Batch, Stats]:
        """What a host's thread did that launched nothing."""
        none = np.full(len(at), NULL)
        times = (rows["start"][at], rows["end"][at])
        return self._fill.called(cat, times, name, rows["pid"][at], rows["tid"][at], none, size)

    def _regions(self, tables: Tables) -> Made:
        for rows in tables.rows("region", (*_TIMES, *_WHOSE, "name_id")):
            cat, name = self._calls(tables, rows["category_id"], rows["name_id"])
            ranged = cat == self._fill.maker.text(RANGE)
            at = np.flatnonzero(ranged)
            if len(at):
                yield self._ranges(tables, rows, at, rows["name_id"])
            times, whose = (rows["start"], rows["end"]), (rows["pid"], rows["tid"])
            held = self._fill.hold_rccl(cat == self._fill.maker.text(RCCL), times, name, whose)
            at = np.flatnonzero(~ranged & ~held)
            yield self._fill.called(
                cat[at],
                (rows["start"][at], rows["end"][at]),
                name[at],
                rows["pid"][at],
                rows["tid"][at],
                self._fill.joined(tables.number, rows["stack_id"][at]),
            )

    def _ranges(
        self, tables: Tables, rows: dict[str, np.ndarray], at: np.ndarray, named: np.ndarray
    ) -> tuple[Batch, Stats]:
        names, events = named[at].tolist(), rows["event_id"][at].tolist()
        texts = [
            tables.message(e) or tables.string(n) or "range of no name" for e, n in zip(events, names, strict=True)
        ]
        return self._fill.ranged((rows["start"][at], rows["end"][at]), texts, rows["pid"][at], rows["tid"][at])

    def _calls(self, tables: Tables, category: np.ndarray, name: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(number of the text of the category of each call, of its name)."""
        pairs, inverse = np.unique(np.stack([category, name], axis=1), axis=0, return_inverse=True)
        found = []
        for c, n in pairs.tolist():
            called = tables.string(n) or "call of no name"
            kind = call_kind(tables.string(c) or "", called)
            found.append((self._fill.maker.text(kind), self._fill.maker.text(called)))
        table = np.array(found, np.int64).reshape(-1, 2)[inverse.reshape(-1)]
        return table[:, 0], table[:, 1]

    def _samples(self, tables: Tables) -> Made:
        for rows in tables.rows("sample", ("timestamp", *_WHOSE, "name_id")):
            rows["start"] = rows["end"] = rows["timestamp"]
            named = np.where(rows["name_id"] != NULL, rows["name_id"], tables.track_names(rows["track_id"]))
            yield self._ranges(tables, rows, np.arange(len(named)), named)

    def _allocations(self, tables: Tables) -> Made:
        """Memory that was taken and given back: which call it was stands in columns of text."""
        kinds = self._database.rows(tables.name("memory_allocate"), ("type", "level"), 1 << 62)
        for rows in tables.rows("memory_allocate", (*_TIMES, *_WHOSE, "size")):
            at = np.arange(len(rows["start"]))
            mine = [next(kinds, ("?", "?")) for _ in at]
            names = [self._fill.maker.text(f"memory {str(kind)[:40]} {str(level)[:40]}") for kind, level in mine]
            cat = np.full(len(names), self._fill.maker.text(OTHER))
            yield self._host(rows, at, cat, np.array(names, np.int64), rows["size"])

    def _named(self, tables: Tables, kind: str, keys: np.ndarray, of: Callable[[int], str]) -> np.ndarray:
        """Numbers of the texts of whole numbers, of one process."""
        unique, inverse = np.unique(keys, return_inverse=True)
        found = []
        for key in unique.tolist():
            known = (kind, tables.number, key)
            if known not in self._texts_of:
                self._texts_of[known] = self._fill.maker.text(of(key))
            found.append(self._texts_of[known])
        return np.array(found, np.int64)[inverse.reshape(-1)] if found else np.zeros(0, np.int64)
