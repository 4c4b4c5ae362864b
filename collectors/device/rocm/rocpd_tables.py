"""The tables of one process in a database of rocpd: `rocpd_<what>_<process>`, joined here and not by the file's views.

Two layouts are known. In released versions a row holds its own times, thread, agent, queue and stream; in another, it
refers to `rocpd_timestamp` and `rocpd_track` for them.
"""

import contextlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from collectors.device.rocm.agents import shown_by, told_beside
from collectors.device.rocm.filling import Filling
from collectors.device.rocm.names import is_hip
from collectors.reading.keyed import Keyed
from collectors.reading.sqlite import NULL, Database, Strings
from errors.shapes import is_object

READ = ("kernel_dispatch", "memory_copy", "memory_allocate", "region", "sample")
_JOINED = ("string", "event", "timestamp", "track", "metadata")
_KNOWN = (*READ, *_JOINED, "arg", "pmc_event")
_NAME = re.compile(r"^rocpd_(info_[a-z_]+?|[a-z]+(?:_[a-z]+)*?)((?:_[0-9a-fA-F]+)+|)$")
_LONGEST_NAME = 200  # with the identifier that it ends in: a longer one would be tried again from each of its parts
_OF_TRACK = {"pid": "pid", "tid": "tid", "agent_id": "agent_id", "queue_id": "queue_id", "stream_id": "stream_id"}
_STAMPS = {"start": "start_id", "end": "end_id", "timestamp": "timestamp_id"}
_MOST, _DEEPEST = 1 << 16, 8
_LEFT_OUT = {
    "arg": ("arguments of calls", "they are not kept"),
    "pmc_event": ("values of counters", "hardware counters are not read"),
}


class Tables:
    """Of one process. `suffix`: what its tables' names end in; `number`: which of the file's processes it is."""

    def __init__(self, database: Database, suffix: str, number: int, filling: Filling):
        self._database, self._suffix, self._filling = database, suffix, filling
        self.number = number
        self._strings = Strings(database, self.name("string"), "id", "string")
        self._beside = Strings(database, self.name("event"), "id", "extdata")
        self._messages: dict[int, str | None] = {}
        self.machine = self._machine()
        self._processes = self._whole("info_process", "pid")
        self._threads = self._whole("info_thread", "tid")
        self._agents = self._whole("info_agent", "absolute_index")
        self._note_agents()
        self._tracks = self._keyed("track", tuple(_OF_TRACK.values()) + ("name_id",))
        self._stamps = self._keyed("timestamp", ("value",))
        self._events = self._keyed("event", ("category_id", "stack_id", "parent_stack_id"))
        self._calls = self._calls_above()

    def name(self, table: str) -> str:
        return f"rocpd_{table}{self._suffix}"

    def _keyed(self, table: str, columns: Sequence[str]) -> Keyed:
        return Keyed(self._database.numbers(self.name(table), ("id", *columns)), "id", columns)

    def string(self, key: int) -> str | None:
        """A text of this process by its number."""
        return None if key == NULL else self._strings.of(key)

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[dict[str, np.ndarray]]:
        """Whole numbers of a table, with times, threads and devices wherever they stand, and what its events tell:
        `category_id`, `stack_id`."""
        refers = ("track_id", *_STAMPS.values(), "event_id")
        wanted = tuple(dict.fromkeys((*columns, *refers)))
        for rows in self._database.numbers(self.name(table), wanted):
            for column, stamp in _STAMPS.items():
                if column in rows:
                    rows[column] = _first(rows[column], self._stamps.of("value", rows[stamp]))
            for column, of in _OF_TRACK.items():
                if column in rows:
                    rows[column] = _first(rows[column], self._tracks.of(of, rows["track_id"]))
            for column, named in (("pid", self._processes), ("tid", self._threads)):
                if column in rows:
                    rows[column] = _renamed(rows[column], named)
            for column in (c for c in rows if c.endswith("agent_id")):
                rows[column] = _renamed(rows[column], self._agents)
            for column in ("category_id", "stack_id"):
                rows[column] = self._events.of(column, rows["event_id"])
            yield rows

    def track_names(self, track: np.ndarray) -> np.ndarray:
        """Number of the name of each track."""
        return self._tracks.of("name_id", track)

    def message(self, event: int) -> str | None:
        """What a program wrote into a range or a mark."""
        if event not in self._messages:
            keyed = self._database.keyed.get(self.name("event")) == "id" and event != NULL
            message = told_beside(self._beside.of(event)).get("message") if keyed else None
            if len(self._messages) >= _MOST:
                self._messages.clear()
            self._messages[event] = message if isinstance(message, str) and message else None
        return self._messages[event]

    def _whole(self, table: str, column: str) -> Mapping[int, int]:
        """Number of a row -> the number of the process, thread or agent itself; most versions make them the same."""
        rows = self._database.rows(self.name(table), ("id", column), _MOST)
        return {i: number for i, number in rows if isinstance(i, int) and isinstance(number, int)}

    def _machine(self) -> str:
        rows = self._database.rows(self.name("info_node"), ("hostname", "machine_id"), 1 << 10)
        for host, machine in rows:
            for text in (host, machine):
                if isinstance(text, str) and text.strip():
                    return text.strip()[:80]
        return ""

    def _note_agents(self) -> None:
        columns = ("id", "type", "type_index", "name", "product_name", "extdata")
        for i, kind, index, name, product, beside in self._database.rows(self.name("info_agent"), columns, _MOST):
            agent = self._agents.get(i, i) if isinstance(i, int) else None
            if agent is not None and kind == "CPU":
                self._filling.agents.cpu(self.machine, agent)
            elif agent is not None and kind == "GPU":
                self._filling.agents.gpu(self.machine, agent, index, shown_by(told_beside(beside), product, name))

    def _calls_above(self) -> tuple[Keyed, np.ndarray]:
        """Calls by their number (`stack_id`), with the one around each; which categories are calls of HIP."""
        categories = np.unique(self._events.all("category_id"))
        texts = {c: self.string(c) or "" for c in categories.tolist()}
        calls = [c for c, text in texts.items() if "api" in text.lower() and "marker" not in text.lower()]
        hip = np.array([c for c in calls if is_hip(texts[c])], np.int64)
        columns = {n: self._events.all(n) for n in ("stack_id", "parent_stack_id", "category_id")}
        chosen = np.isin(columns["category_id"], np.array(calls, np.int64)) & (columns["stack_id"] > 0)
        parts = [{n: v[chosen] for n, v in columns.items()}] if len(hip) and len(calls) > len(hip) else []
        return Keyed(parts, "stack_id", ("parent_stack_id", "category_id")), hip

    def launched_by(self, stack: np.ndarray) -> np.ndarray:
        """The call that launched something: where it was one of HSA, that of HIP around it, if there is one."""
        calls, hip = self._calls
        out, at = stack.copy(), stack.copy()
        if not len(calls):
            return out
        for _ in range(_DEEPEST):
            found = np.isin(calls.of("category_id", at), hip)
            out = np.where(found, at, out)
            at = np.where(found, NULL, calls.of("parent_stack_id", at))
        return out

    def environments(self) -> Iterator[dict[str, object]]:
        """The environment of each process, where the database keeps it."""
        for (text,) in self._database.rows(self.name("info_process"), ("environment",), _MOST):
            with contextlib.suppress(ValueError, RecursionError):
                told = json.loads(text) if isinstance(text, str) else None
                if is_object(told):
                    yield told

    def thread_names(self) -> Iterator[tuple[int, int, str]]:
        """(process, thread, name) of those that have one; a process's first thread has the name of its program."""
        named = {}
        for pid, command in self._database.rows(self.name("info_process"), ("pid", "command"), _MOST):
            if isinstance(pid, int) and isinstance(command, str) and command.strip():
                named[pid, pid] = command.split()[0].rsplit("/", 1)[-1][:80]
        columns = ("pid", "tid", "name")
        for pid, tid, name in self._database.rows(self.name("info_thread"), columns, _MOST):
            if isinstance(pid, int) and isinstance(tid, int) and isinstance(name, str) and name.strip():
                named[self._processes.get(pid, pid), tid] = name.strip()[:200]
        yield from ((pid, tid, name) for (pid, tid), name in named.items())

    def left_out(self) -> Iterator[tuple[int, str, str]]:
        """(how many, what, why) of rows that are not read."""
        for table, (what, why) in _LEFT_OUT.items():
            yield self._database.count(self.name(table)), what, why


def processes(database: Database) -> list[str]:
    """What the names of each process's tables end in, in the order of the file."""
    found: dict[str, None] = {}
    for table in database.columns:
        match = _named(table)
        if match and match[1] in READ:
            found[match[2]] = None
    return list(found)


def _named(table: str) -> re.Match[str] | None:
    """What a table's name tells; nothing where it is so long that rocpd gave no such name."""
    return _NAME.match(table) if len(table) <= _LONGEST_NAME else None


def unknown(database: Database) -> Iterator[str]:
    """Tables of rocpd that nothing here knows."""
    for table in database.columns:
        match = _named(table)
        if match and match[1] not in _KNOWN and not match[1].startswith("info_"):
            yield table


def _renamed(told: np.ndarray, named: Mapping[int, int]) -> np.ndarray:
    unique, inverse = np.unique(told, return_inverse=True)
    found = [named.get(number, number) for number in unique.tolist()]
    return np.array(found, np.int64)[inverse.reshape(-1)] if found else told


def _first(told: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.where(told != NULL, told, other)


def symbol(database: Database, tables: Tables) -> Any:
    """Names of kernels by their number: as they are shown, else as they are compiled."""
    table = tables.name("info_kernel_symbol")
    shown, compiled = (Strings(database, table, "id", c) for c in ("display_name", "kernel_name"))
    return lambda key: shown.of(key) or compiled.of(key)
