"""Timelines of Ray (`ray timeline`, `ray.timeline(file)`, the dashboard's download): what each worker did when.

A bare list of Chrome's trace events, times in us since the epoch. Of 2019: no process, threads called `worker:<id>` and
`driver:<id>`. Of today: numbers, whose names (`Node <ip>`, `worker:<id>`) stand at the end.

    ops, op_events   an event of a worker, in the lane of that worker (role `host`), on the node that it ran on
    event_stats      its arguments: task, function, actor, attempt
    captures         the whole; its host is the node where there is one

Events nest: a task holds its `task:execute`, that the `ray.get` within. `total_ns` sums all of a name up; of `self_ns`
each instant is one event's alone, the one that began last, so that those of a worker add up to the time it has events.
Tasks that an asynchronous or threaded actor ran side by side take turns in the same way. The colours of boxes are left
out.
"""

import re
from array import array
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from collectors.base import Item, Rows, Source
from collectors.reading.documents import text
from collectors.reading.json_stream import BOM, objects
from collectors.reading.textlog import BATCH_ROWS, Tally, clean
from errors import InputError
from runs.schema import SCHEMAS

NAME = "ray_timeline"
TITLE = "Ray timeline"
HELP = "Timelines of Ray as JSON (`ray timeline`): tasks, their phases, ray.get, ray.put and idle time of each worker."

MOST_EVENTS, MOST_OPS, MOST_THREADS = 10_000_000, 1 << 20, 1 << 16
_CATS = re.compile(
    rb'"cat"\s*:\s*"(?:task::|task:(?:execute|deserialize_arguments|store_outputs)"|ray\.(?:get|put|wait)"|worker_idle"|'
    rb'(?:wait_for|fetch_and_run|register_remote)_function")|"tid"\s*:\s*"(?:worker|driver):[0-9a-f]{12,}"'
)
_ARGS = re.compile(rb'"func_or_class_name"\s*:')
_ENDINGS = re.compile(r"(\.json)?(\.gz)?$")
_FARTHEST_NS = 100 * 86_400 * 1_000_000_000  # from the median start: 64 bits hold some 106 days of ps
_NO_TIME_US = 9e15  # beyond 2255
_MOST_ARGS, _LONGEST = 8, 200


def sniff(source: Source) -> float:
    """0.95 for a list of trace events with categories, threads or arguments of Ray's."""
    head = source.head.removeprefix(BOM).lstrip()
    if head[:1] != b"[" or b'"ph"' not in head:
        return 0.0
    return 0.95 if _CATS.search(head) or (_ARGS.search(head) and b'"cname"' in head) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Operations and events of hosts. Raises InputError where no event has a time."""
    tally, told = Tally(), _Told(source)
    for offset, event in objects(source, tally):
        told.take(event, offset, tally)
        yield from told.full()
    if not told.starts:
        raise InputError(
            "no event of a worker in it",
            where=source.name,
            expected="what `ray timeline` writes, with tasks",
            advice="Ray keeps events for a while and hands them on each second: write the timeline when tasks have run",
        )
    yield from told.items(tally)
    yield from tally.lost()


class _Told:
    """Events by column, and what stands beside them."""

    def __init__(self, source: Source):
        self._source, self._capture = clean(source.name), source.index
        self._file = _ENDINGS.sub("", PurePath(self._source).name) or self._source
        self.starts, self._durs = array("q"), array("q")  # ns
        self._of = array("q")  # number of the operation
        self._ops: dict[tuple[int, str], int] = {}  # by (thread, name)
        self._threads: dict[tuple[Any, Any], int] = {}
        self._names: dict[tuple[Any, Any], str] = {}  # by process and thread, of a process by (process, None)
        self._stats: list[tuple[int, str, int | None, float | None, str | None]] = []

    def take(self, event: Mapping[str, Any], offset: int, tally: Tally) -> None:
        """One object of the list."""
        phase, pid, tid = event.get("ph"), _place(event.get("pid")), _place(event.get("tid"))
        if phase == "M":
            self._name(event, pid, tid)
            return
        start, dur = _ns(event.get("ts")), _ns(event.get("dur"))
        if phase != "X" or start is None or dur is None or dur < 0:
            why = "neither a name nor a stretch of time" if phase != "X" else "their time is damaged"
            tally.add("events", why, offset)
        elif len(self.starts) >= MOST_EVENTS:
            tally.add("events", f"more than {MOST_EVENTS:,}", offset)
        elif (op := self._op(event, pid, tid)) is None:
            tally.add("events", f"of more than {MOST_OPS:,} names or {MOST_THREADS:,} workers", offset)
        else:
            self._args(event.get("args"))
            self.starts.append(start)
            self._durs.append(dur)
            self._of.append(op)

    def _name(self, event: Mapping[str, Any], pid: Any, tid: Any) -> None:
        args, kind = event.get("args"), event.get("name")
        name = text(args.get("name")) if isinstance(args, dict) else None
        if name and kind in ("process_name", "thread_name") and len(self._names) < MOST_THREADS:
            key = (pid, None) if kind == "process_name" else (pid, tid)
            self._names.setdefault(key, name.removeprefix("Node ") if kind == "process_name" else name)

    def _op(self, event: Mapping[str, Any], pid: Any, tid: Any) -> int | None:
        if (pid, tid) not in self._threads and len(self._threads) >= MOST_THREADS:
            return None
        thread = self._threads.setdefault((pid, tid), len(self._threads))
        key = thread, text(event.get("name")) or text(event.get("cat")) or "unnamed"
        if key not in self._ops and len(self._ops) >= MOST_OPS:
            return None
        return self._ops.setdefault(key, len(self._ops))

    def _args(self, args: Any) -> None:
        """The arguments of the event that is taken next."""
        if not isinstance(args, dict):
            return
        for key, value in list(args.items())[:_MOST_ARGS]:
            if isinstance(value, str) and value and key not in ("name", "cname"):
                self._stats.append((len(self.starts), _kept(key, 60), None, None, _kept(value, _LONGEST)))
            elif isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62:
                self._stats.append((len(self.starts), _kept(key, 60), value, None, None))

    def full(self) -> Iterator[Rows]:
        """Arguments, once there are many."""
        if len(self._stats) >= BATCH_ROWS:
            yield from self._stat_rows()

    def _stat_rows(self) -> Iterator[Rows]:
        if self._stats:
            event, name, whole, real, word = zip(*self._stats, strict=True)
            columns = {"capture": [self._capture] * len(event), "event": event, "name": name}
            columns |= {"int_value": whole, "float_value": real, "text_value": word}
            self._stats = []
            yield Rows("event_stats", SCHEMAS["event_stats"].batch(columns))

    def items(self, tally: Tally) -> Iterator[Item]:
        """All rows, once the file is at its end."""
        yield from self._stat_rows()
        starts, durs, of = (np.array(column, np.int64) for column in (self.starts, self._durs, self._of))
        near = np.abs(starts - int(np.median(starts))) < _FARTHEST_NS
        near &= durs < _FARTHEST_NS
        if not near.all():
            tally.add(
                "events", "they begin months before or after the others, or last that long", count=int((~near).sum())
            )
        event = np.flatnonzero(near)
        starts, durs, of = starts[near], durs[near], of[near]
        if not len(starts):
            raise InputError("no event that can be", where=self._source, expected="events of days at most")
        base = int(starts.min())
        hosts = self._hosts()
        yield from self._op_rows(starts, durs, of, hosts)
        for at in range(0, len(event), BATCH_ROWS):
            part = slice(at, at + BATCH_ROWS)
            columns = {"capture": np.full(len(event[part]), self._capture, np.int32), "event": event[part]}
            columns |= {"op_id": of[part], "start_ps": (starts[part] - base) * 1000, "dur_ps": durs[part] * 1000}
            yield Rows("op_events", SCHEMAS["op_events"].batch(columns))
        one = {*hosts.values()}
        columns = {"capture": [self._capture], "host": [one.pop() if len(one) == 1 else None], "start_ns": [base]}
        columns |= {"stop_ns": [int((starts + durs).max())], "source": [self._source]}
        yield Rows("captures", SCHEMAS["captures"].batch(columns))

    def _hosts(self) -> dict[int, str]:
        """The node of each thread: by its name, else as its process is called, else the file."""
        found = {}
        for (pid, _), thread in self._threads.items():
            name = self._names.get((pid, None)) or (pid if isinstance(pid, str) else None)
            found[thread] = name or (f"{self._file} node {pid}" if pid is not None else self._file)
        return found

    def _lines(self) -> dict[int, str]:
        """The lane of each thread: `worker:<id>`."""
        found = {}
        for (pid, tid), thread in self._threads.items():
            name = self._names.get((pid, tid)) or (tid if isinstance(tid, str) else None)
            found[thread] = name or (f"thread {tid}" if tid is not None else "events of no worker")
        return found

    def _op_rows(self, starts: np.ndarray, durs: np.ndarray, of: np.ndarray, hosts: dict[int, str]) -> Iterator[Rows]:
        lines = self._lines()
        count = np.bincount(of, minlength=len(self._ops))
        total = np.bincount(of, weights=durs, minlength=len(self._ops))
        thread = np.array([key[0] for key in self._ops], np.int64)
        own = _alone(starts, durs, of, thread)
        some = np.flatnonzero(count)
        keys = list(self._ops)
        for at in range(0, len(some), BATCH_ROWS):
            part = some[at : at + BATCH_ROWS]
            mine = [keys[n] for n in part.tolist()]
            rows = len(mine)
            columns: dict[str, Any] = {"capture": [self._capture] * rows, "op_id": part}
            columns |= {"host": [hosts[t] for t, _ in mine], "line": [lines[t] for t, _ in mine]}
            columns |= {"op": [name for _, name in mine], "role": ["host"] * rows, "category": ["host"] * rows}
            columns |= {"count": count[part], "total_ns": total[part], "self_ns": own[part]}
            yield Rows("ops", SCHEMAS["ops"].batch(columns))


def _alone(starts: np.ndarray, durs: np.ndarray, of: np.ndarray, thread: np.ndarray) -> np.ndarray:
    """ns of each operation that are its own: each instant of a thread is that of the event which began last of those
    that have not ended."""
    own = np.zeros(len(thread), np.int64)
    order = np.lexsort((-durs, starts, thread[of]))
    open_: list[tuple[int, int]] = []  # (end, operation) of what goes on, what ends first last
    before = -1
    for start, dur, op, on in zip(*(c[order].tolist() for c in (starts, durs, of, thread[of])), strict=True):
        if on != before:
            open_, before = [], on
        end = start + dur
        while open_ and open_[-1][0] <= start:
            open_.pop()
        own[op] += dur
        taken = start
        for until, beneath in reversed(open_):
            until = min(until, end)
            own[beneath] -= until - taken
            taken = until
            if taken >= end:
                break
        while open_ and dur and open_[-1][0] <= end:
            open_.pop()  # covered to its end
        if dur:
            open_.append((end, op))
    return own


def _kept(value: str, most: int) -> str:
    """So much of a text, as UTF-8 can hold it."""
    return value[:most] if value.isascii() else clean(value[:most])


def _place(found: Any) -> Any:
    """A process or a thread: a number, or a text that is not blank; None for none."""
    if isinstance(found, str):
        return text(found)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _ns(us: Any) -> int | None:
    """us as whole ns, as exactly as they were written; None for no finite number, or no time."""
    if isinstance(us, bool) or not isinstance(us, int | float) or not -_NO_TIME_US < us < _NO_TIME_US:
        return None
    whole = int(us)
    return whole * 1000 + round((us - whole) * 1000)
