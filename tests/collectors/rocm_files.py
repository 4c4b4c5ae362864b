"""Small files of AMD's profilers, written by hand as rocprofv3 and rocmProfileData write them."""

import contextlib
import json
import sqlite3
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

BOOT = 63_857_000_000_000  # ns since the machine was started: these profilers know no other time
GUID = "00003f2a-1b2c-7d3e-8f40-112233445566"

_COLUMNS: Mapping[str, str] = {
    "metadata": "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, tag TEXT, value TEXT",
    "string": "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, guid TEXT, string TEXT",
    "info_node": "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, guid TEXT, machine_id TEXT, hostname TEXT",
    "info_process": "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, guid TEXT, nid INTEGER, pid INTEGER, command TEXT, "
    "environment JSONB",
    "info_thread": "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, guid TEXT, nid INTEGER, pid INTEGER, tid INTEGER, "
    "name TEXT",
    "info_agent": "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, guid TEXT, nid INTEGER, pid INTEGER, type TEXT, "
    "absolute_index INTEGER, type_index INTEGER, name TEXT, product_name TEXT, extdata JSONB",
    "info_kernel_symbol": "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, guid TEXT, kernel_name TEXT, "
    "display_name TEXT",
    "event": "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, guid TEXT, category_id INTEGER, stack_id INTEGER, "
    "parent_stack_id INTEGER, correlation_id INTEGER, extdata JSONB",
    "arg": "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, guid TEXT, event_id INTEGER, position INTEGER, type TEXT, "
    "name TEXT, value TEXT",
    "pmc_event": "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, guid TEXT, event_id INTEGER, pmc_id INTEGER, "
    "value REAL",
}
_OWN_TIMES: Mapping[str, str] = {
    "track": "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, nid INTEGER, pid INTEGER, tid INTEGER, name_id INTEGER",
    "region": "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, guid TEXT, nid INTEGER, pid INTEGER, tid INTEGER, "
    "start BIGINT, end BIGINT, name_id INTEGER, event_id INTEGER",
    "sample": "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, guid TEXT, track_id INTEGER, timestamp BIGINT, "
    "event_id INTEGER",
    "kernel_dispatch": "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, guid TEXT, nid INTEGER, pid INTEGER, "
    "tid INTEGER, agent_id INTEGER, kernel_id INTEGER, dispatch_id INTEGER, queue_id INTEGER, stream_id INTEGER, "
    "start BIGINT, end BIGINT, event_id INTEGER",
    "memory_copy": "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, guid TEXT, nid INTEGER, pid INTEGER, tid INTEGER, "
    "start BIGINT, end BIGINT, name_id INTEGER, dst_agent_id INTEGER, src_agent_id INTEGER, size INTEGER, "
    "queue_id INTEGER, stream_id INTEGER, event_id INTEGER",
    "memory_allocate": "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, guid TEXT, nid INTEGER, pid INTEGER, "
    "tid INTEGER, agent_id INTEGER, type TEXT, level TEXT, start BIGINT, end BIGINT, size INTEGER, event_id INTEGER",
}
_SHARED_TIMES: Mapping[str, str] = {
    "track": "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, nid INTEGER, pid INTEGER, tid INTEGER, agent_id INTEGER, "
    "queue_id INTEGER, stream_id INTEGER, name_id INTEGER",
    "timestamp": "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, value BIGINT NOT NULL, phase INTEGER, "
    "track_id INTEGER",
    "region": "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, track_id INTEGER, name_id INTEGER, start_id INTEGER, "
    "end_id INTEGER, event_id INTEGER",
    "sample": "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, track_id INTEGER, name_id INTEGER, timestamp_id INTEGER, "
    "event_id INTEGER",
    "kernel_dispatch": "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, track_id INTEGER, kernel_id INTEGER, "
    "dispatch_id INTEGER, start_id INTEGER, end_id INTEGER, event_id INTEGER",
    "memory_copy": "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, track_id INTEGER, start_id INTEGER, end_id INTEGER, "
    "name_id INTEGER, dst_agent_id INTEGER, src_agent_id INTEGER, size INTEGER, event_id INTEGER",
    "memory_allocate": "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, track_id INTEGER, type TEXT, level TEXT, "
    "start_id INTEGER, end_id INTEGER, size INTEGER, event_id INTEGER",
}
_VIEW = "CREATE VIEW rocpd_region AS SELECT * FROM rocpd_region{0}"
MI300X = {"gfx_target_version": 90402, "cu_count": 304, "mem_banks": [{"size_in_bytes": 205_822_885_888}]}


def write_tables(
    path: Path, columns: Mapping[str, str], rows: Mapping[str, Sequence[Sequence[Any]]], *also: str
) -> Path:
    """A database of these tables. `also`: statements that are run at the end."""
    path.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        for table, told in columns.items():
            connection.execute(f'CREATE TABLE "{table}" ({told})')
            marks = ",".join("?" * len(told.split(", ")))
            connection.executemany(f'INSERT INTO "{table}" VALUES ({marks})', rows.get(table, ()))
        for statement in also:
            connection.execute(statement)
        connection.execute("COMMIT")
    return path


class Process:
    """What rocprofv3 records of one process. `shared`: the layout in which times and tracks stand in tables of their
    own."""

    def __init__(self, pid: int = 908, guid: str = GUID, host: str = "node-7", shared: bool = False):
        self.pid, self.guid, self.shared = pid, guid, shared
        self.suffix = "_" + guid.replace("-", "_")
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self._strings: dict[str, int] = {}
        self._ids: dict[str, int] = {}
        self._tracks: dict[tuple, int] = {}
        self._kernels: dict[str, int] = {}
        self.put("info_node", id=1, machine_id="m-" + host, hostname=host)
        self.put("info_process", id=pid, nid=1, pid=pid, command=f"/opt/conda/bin/python3.11 -u train.py --rank {pid}")
        self.put("metadata", tag="schema_version", value="3")

    def put(self, table: str, **values: Any) -> int:
        """Adds a row; its number."""
        self._ids[table] = values.setdefault("id", self._ids.get(table, 0) + 1)
        self.rows.setdefault(table, []).append(values)
        return values["id"]

    def string(self, text: str) -> int:
        if text not in self._strings:
            self._strings[text] = self.put("string", string=text)
        return self._strings[text]

    def agent(self, number: int, kind: str = "GPU", index: int = 0, product="AMD Instinct MI300X", **beside) -> None:
        """A device or a processor."""
        told = json.dumps({**MI300X, **beside}) if kind == "GPU" else "{}"
        self.put(
            "info_agent",
            id=number,
            nid=1,
            pid=self.pid,
            type=kind,
            absolute_index=number,
            type_index=index,
            name="gfx942" if kind == "GPU" else "AMD EPYC",
            product_name=product,
            extdata=told,
        )

    def _event(self, category: str, stack: int, parent: int = 0, message: str | None = None) -> int:
        told = "{}" if message is None else json.dumps({"message": message})
        return self.put(
            "event", category_id=self.string(category), stack_id=stack, parent_stack_id=parent, extdata=told
        )

    def _timed(self, table: str, start: int, end: int, whose: dict[str, Any], **values: Any) -> None:
        if not self.shared:
            self.put(table, start=start, end=end, **whose, **values)
            return
        key = tuple(sorted(whose.items()))
        if key not in self._tracks:
            self._tracks[key] = self.put("track", **whose)
        track = self._tracks[key]
        stamps = [self.put("timestamp", value=t, phase=1, track_id=track) for t in (start, end)]
        self.put(table, track_id=track, start_id=stamps[0], end_id=stamps[1], **values)

    def _whose(self, tid: int | None, **more: Any) -> dict[str, Any]:
        return {"nid": 1, "pid": self.pid, "tid": tid or self.pid, **more}

    def kernel(self, name: str, start: int, dur: int, stack: int = 0, agent: int = 2, queue: int = 16, stream: int = 0):
        """A kernel, launched by the call of number `stack`."""
        if name not in self._kernels:
            self._kernels[name] = self.put("info_kernel_symbol", kernel_name=name + ".kd", display_name=name)
        whose = self._whose(None, agent_id=agent, queue_id=queue, stream_id=stream)
        event = self._event("KERNEL_DISPATCH", stack, stack)
        self._timed(
            "kernel_dispatch", start, start + dur, whose, kernel_id=self._kernels[name], dispatch_id=1, event_id=event
        )
        return self

    def copy(self, name: str, start: int, dur: int, stack: int = 0, to: int = 2, of: int = 0, size: int = 4096):
        """A copy of memory between two agents."""
        event = self._event("MEMORY_COPY", stack, stack)
        told = {"dst_agent_id": to, "src_agent_id": of, "size": size, "event_id": event}
        whose = self._whose(None, stream_id=3)
        self._timed("memory_copy", start, start + dur, whose, name_id=self.string(name), **told)
        return self

    def call(
        self, name: str, start: int, dur: int, stack: int, category="HIP_RUNTIME_API", parent=0, tid=None, message=None
    ):
        """A call of an API, or a range."""
        event = self._event(category, stack, parent, message)
        self._timed("region", start, start + dur, self._whose(tid), name_id=self.string(name), event_id=event)
        return self

    def range(self, text: str, start: int, dur: int, tid=None):
        """A range of ROCTX."""
        stack = 100_000 + len(self.rows.get("region", ()))
        return self.call("roctxThreadRangeA", start, dur, stack, "MARKER_CORE_RANGE_API", tid=tid, message=text)

    def ran(self, name: str, start: int, dur: int, stack: int, lag: int = 50, **more: Any):
        """A kernel with the call that launched it `lag` before."""
        return self.call("hipLaunchKernel", start - lag, 5, stack).kernel(name, start, dur, stack, **more)

    def mark(self, text: str, at: int):
        """A mark of ROCTX."""
        event = self._event("MARKER_CORE_RANGE_API", 0, 0, text)
        track = self.put("track", nid=1, pid=self.pid, tid=self.pid, name_id=self.string("MARKER_CORE_RANGE_API"))
        if self.shared:
            stamp = self.put("timestamp", value=at, phase=0, track_id=track)
            self.put("sample", track_id=track, timestamp_id=stamp, name_id=self.string("roctxMarkA"), event_id=event)
        else:
            self.put("sample", track_id=track, timestamp=at, event_id=event)
        return self

    def allocate(self, kind: str, start: int, dur: int, size: int):
        """Memory that was taken or given back."""
        event = self._event("MEMORY_ALLOCATION", 0)
        self._timed(
            "memory_allocate", start, start + dur, self._whose(None), type=kind, level="REAL", size=size, event_id=event
        )
        return self

    def tables(self) -> tuple[dict[str, str], dict[str, list[tuple]]]:
        """(columns, rows) of each table, under its full name."""
        columns = {**_COLUMNS, **(_SHARED_TIMES if self.shared else _OWN_TIMES)}
        made = {}
        for table, told in columns.items():
            names = [c.split()[0] for c in told.split(", ")]
            rows = [{"guid": self.guid, **row} for row in self.rows.get(table, ())]
            made[f"rocpd_{table}{self.suffix}"] = [tuple(row.get(n) for n in names) for row in rows]
        return {f"rocpd_{t}{self.suffix}": c for t, c in columns.items()}, made


def write_rocpd(path: Path, *processes: Process, also: Sequence[str] = ()) -> Path:
    """The database of these processes."""
    columns: dict[str, str] = {}
    rows: dict[str, list[tuple]] = {}
    for process in processes:
        mine, told = process.tables()
        columns |= mine
        rows |= told
    return write_tables(path, columns, rows, _VIEW.format(processes[0].suffix), *also)


def everything(shared: bool = False, **who: Any) -> Process:
    """A small profile with something of everything: two steps on one device."""
    made = Process(shared=shared, **who)
    made.agent(0, "CPU")
    made.agent(2)
    made.agent(3, index=1)
    made.put("info_thread", id=made.pid, nid=1, pid=made.pid, tid=made.pid, name=None)
    made.put("info_thread", id=77, nid=1, pid=made.pid, tid=77, name="loader")
    for step in range(2):
        at, call = BOOT + 1_000_000 * (step + 1), 10 * step
        made.range(f"step {step + 7}", at, 900_000)
        made.range("attention", at + 2_000, 300_000)
        made.ran("Cijk_Ailk_Bljk_HHS_BH", at + 10_000, 70_000, call + 1)
        made.ran("vectorized_elementwise_kernel", at + 200_000, 50_000, call + 2, stream=4, queue=17)
        made.call("ncclAllReduce", at + 312_000, 37_000, call + 3, "RCCL_API")
        made.ran("ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)", at + 330_000, 60_000, call + 4, lag=5_000)
        made.call("hipMemcpyAsync", at + 500_000, 4_000, call + 5)
        made.copy("MEMORY_COPY_HOST_TO_DEVICE", at + 505_000, 1_000, call + 5, size=1 << 20)
        made.call("hsa_signal_wait_scacquire", at + 600_000, 5_000, call + 6, "HSA_CORE_API", tid=77)
    made.mark("loss is finite", BOOT + 2_950_000).allocate("ALLOC", BOOT + 500_000, 2_000, 1 << 21)
    made.put("arg", event_id=1, position=0, type="size_t", name="count", value="12")
    made.put("pmc_event", event_id=1, pmc_id=3, value=1.5)
    return made


def rocpd_bytes(**how: Any) -> bytes:
    """The same as the file's bytes."""
    with tempfile.TemporaryDirectory() as folder:
        return write_rocpd(Path(folder) / "made.db", everything(**how)).read_bytes()
