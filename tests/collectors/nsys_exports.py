"""Exports of Nsight Systems, written by hand as `nsys export --type sqlite` writes them."""

import contextlib
import sqlite3
import struct
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

BASE = 1_779_630_014_975_716_426
VM = 1 << 48

COLUMNS: Mapping[str, str] = {
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, "
    "contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, "
    "demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, graphNodeId INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
    "correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMSET": "start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
    "correlationId INTEGER, globalPid INTEGER, bytes INTEGER, memKind INTEGER",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, "
    "correlationId INTEGER, nameId INTEGER, returnValue INTEGER",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": "start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
    "correlationId INTEGER, globalPid INTEGER, syncType INTEGER",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": "start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
    "correlationId INTEGER, globalPid INTEGER, graphId INTEGER, graphExecId INTEGER",
    "CUDA_GRAPH_NODE_EVENTS": "start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, nameId INTEGER, "
    "graphNodeId INTEGER, originalGraphNodeId INTEGER",
    "NVTX_EVENTS": "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid INTEGER, "
    "textId INTEGER, domainId INTEGER, binaryData BLOB",
    "NVTX_PAYLOAD_SCHEMA_ENTRIES": "domainId INTEGER NOT NULL, schemaId INTEGER NOT NULL, idx INTEGER NOT NULL, "
    "flags INTEGER, type INTEGER, name TEXT, offset INTEGER",
    "OSRT_API": "start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER",
    "PROFILER_OVERHEAD": "start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER, overheadType INTEGER",
    "GPU_METRICS": "rawTimestamp INTEGER, timestamp INTEGER, typeId INTEGER, metricId INTEGER, value INTEGER",
    "TARGET_INFO_GPU_METRICS": "typeId INTEGER, sourceId INTEGER, typeName TEXT, metricId INTEGER, metricName TEXT",
    "CUDA_GPU_MEMORY_USAGE_EVENTS": "start INTEGER, globalPid INTEGER, deviceId INTEGER, bytes INTEGER, "
    "memKind INTEGER, memoryOperationType INTEGER",
    "DIAGNOSTIC_EVENT": "timestamp INTEGER, severity INTEGER, text TEXT",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT",
    "TARGET_INFO_GPU": "id INTEGER, name TEXT, totalMemory INTEGER, smCount INTEGER, computeMajor INTEGER, "
    "computeMinor INTEGER",
    "TARGET_INFO_CUDA_DEVICE": "gpuId INTEGER, cudaId INTEGER, pid INTEGER, uuid TEXT, numMultiprocessors INTEGER",
    "TARGET_INFO_SYSTEM_ENV": "globalVid INTEGER, devStateName TEXT, name TEXT, nameEnum INTEGER, value TEXT",
    "META_DATA_EXPORT": "name TEXT NOT NULL, value TEXT",
    "ThreadNames": "nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER",
    "SCHED_EVENTS": "start INTEGER, cpu INTEGER, isSchedIn INTEGER, globalTid INTEGER",
}


INIT, COLLECTIVE = 16_777_218, 16_777_220  # schemas of NCCL's payloads


def payload(schema: int, fields: str, *values: int, domain: int = 1) -> bytes:
    """A payload as Nsight keeps it."""
    content = struct.pack(fields, *values)
    return struct.pack("<IIIIQQ", domain, 0, schema, 0, len(content), 32 + len(content)) + content


def tid_of(pid: int, tid: int = 1) -> int:
    """A thread's global id."""
    return VM | pid << 24 | tid


class Export:
    """Collects rows by table; `data` is the file."""

    def __init__(self, **without: Any) -> None:
        self.rows: dict[str, list[tuple]] = {"META_DATA_EXPORT": [("EXPORT_PRODUCT_VERSION", "2025.1.3")]}
        self.columns = {
            k: ", ".join(c for c in v.split(", ") if c.split()[0] not in without.get(k, ())) for k, v in COLUMNS.items()
        }
        self._strings: dict[str, int] = {}
        self.put("TARGET_INFO_SESSION_START_TIME", (BASE, None, None))

    def put(self, table: str, *rows: Sequence[Any]) -> "Export":
        """Adds rows as they stand."""
        self.rows.setdefault(table, []).extend(map(tuple, rows))
        return self

    def string(self, text: str) -> int:
        """Id of a text."""
        if text not in self._strings:
            self._strings[text] = len(self._strings) + 100
            self.put("StringIds", (self._strings[text], text))
        return self._strings[text]

    def kernel(self, name, start, dur, correlation=0, pid=10, device=0, stream=7, node=None, short=None) -> "Export":
        """A kernel."""
        row = (start, start + dur, device, 1, stream, correlation, tid_of(pid, 0), self.string(name))
        return self.put("CUPTI_ACTIVITY_KIND_KERNEL", (*row, self.string(short or name), node))

    def launch(self, start, dur, correlation, name="cudaLaunchKernel_v7000", pid=10, tid=1) -> "Export":
        """A call of the CUDA API."""
        row = (start, start + dur, 0, tid_of(pid, tid), correlation, self.string(name), 0)
        return self.put("CUPTI_ACTIVITY_KIND_RUNTIME", row)

    def node(self, start, node, original=None, pid=10, tid=1) -> "Export":
        """A node of a graph that is made, or copied."""
        row = (start, start, 0, tid_of(pid, tid), self.string("Graph Node Creation"), node, original)
        return self.put("CUDA_GRAPH_NODE_EVENTS", row)

    def ran(self, name, start, dur, correlation, pid=10, tid=1, lag=50, **more) -> "Export":
        """A kernel with the call that launched it `lag` before."""
        return self.launch(start - lag, 5, correlation, pid=pid, tid=tid).kernel(
            name, start, dur, correlation, pid=pid, **more
        )

    def range(self, text, start, end, kind=59, pid=10, tid=1, registered=False, payload=None) -> "Export":
        """An NVTX range."""
        words = (None, tid_of(pid, tid), self.string(text)) if registered else (text, tid_of(pid, tid), None)
        return self.put("NVTX_EVENTS", (start, end, kind, *words, 0, payload))

    def nccl_fields(self) -> "Export":
        """The fields of NCCL's payloads, the first at no offset, as Nsight writes it."""
        told = ((INIT, ("NCCL communicator ID", 18, None), ("No. of ranks", 5, 8), ("Rank", 5, 12)),)
        told += ((COLLECTIVE, ("NCCL communicator ID", 18, None), ("Message size [bytes]", 22, 8)),)
        for schema, *fields in told:
            for n, (name, kind, at) in enumerate(fields):
                self.put("NVTX_PAYLOAD_SCHEMA_ENTRIES", (1, schema, n, None, kind, name, at))
        return self

    def write(self, path: Path) -> Path:
        """Writes the file."""
        path.unlink(missing_ok=True)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("BEGIN")
            for table, rows in self.rows.items():
                columns = self.columns[table]
                connection.execute(f"CREATE TABLE {table} ({columns})")
                marks = ",".join("?" * len(columns.split(", ")))
                connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
            connection.execute("COMMIT")
        return path

    def parquet(self, folder: Path) -> Path:
        """Writes the tables as a Parquet file each, as `nsys export --type parquetdir` does."""
        folder.mkdir(parents=True, exist_ok=True)
        for table, rows in self.rows.items():
            told = [c.split()[:2] for c in self.columns[table].split(", ")]
            kinds = [{"INTEGER": pa.int64(), "BLOB": pa.binary()}.get(kind, pa.string()) for _, kind in told]
            columns = [pa.array([row[n] for row in rows], kind) for n, kind in enumerate(kinds)]
            pq.write_table(pa.table(columns, [name for name, _ in told]), folder / f"{table}.parquet")
        return folder

    def data(self, folder: Path) -> bytes:
        """The file's bytes."""
        return self.write(folder / "made.sqlite").read_bytes()


def everything() -> Export:
    """A small export with something of everything: two steps on one device."""
    made = Export()
    for step, at in enumerate((1_000_000, 2_000_000)):
        made.range(f"step {step + 7}", at, at + 900_000)
        made.range("forward", at + 1_000, at + 400_000)
        made.range("attention", at + 2_000, at + 300_000)
        made.range(f"aten::mm, seq = {step}, op_id = {40 + step}, sizes = [[8, 4], [4, 2]]", at + 3_000, at + 90_000)
        made.ran("void gemm<float>(int)", at + 10_000, 70_000, 10 * step + 1, short="gemm")
        made.ran("vectorized_elementwise_kernel", at + 200_000, 50_000, 10 * step + 2)
        made.range("nccl:all_reduce", at + 310_000, at + 350_000)
        made.range(
            "ncclAllReduce",
            at + 312_000,
            at + 349_000,
            payload=payload(COLLECTIVE, "<QQ", 77, 4096),
        )
        made.ran("ncclDevKernel_AllReduce_Sum_f32(ncclArgs)", at + 330_000, 60_000, 10 * step + 3, stream=20, lag=5_000)
        made.launch(at + 500_000, 4_000, 10 * step + 4, "cudaMemcpyAsync_v3020")
        made.put(
            "CUPTI_ACTIVITY_KIND_MEMCPY",
            (at + 505_000, at + 506_000, 0, 7, 10 * step + 4, tid_of(10, 0), 1 << 20, 1, 1, 2),
        )
        made.put("CUPTI_ACTIVITY_KIND_MEMSET", (at + 510_000, at + 511_000, 0, 7, 0, tid_of(10, 0), 64, 2))
        made.put("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", (at + 520_000, at + 530_000, 0, 7, 0, tid_of(10, 0), 3))
        made.put("OSRT_API", (at + 540_000, at + 545_000, tid_of(10, 2), made.string("poll")))
        for n in range(3):
            made.put("GPU_METRICS", (0, at + n, 0x100, 3, 40 + n))
    made.range("ncclCommInitRank", 500_000, 600_000, payload=payload(INIT, "<Qiii", 77, 2, 1, 0))
    made.nccl_fields()
    made.put("TARGET_INFO_GPU_METRICS", (0x100, 1, "GPU Metrics", 3, "SMs Active [Throughput %]"))
    made.put("TARGET_INFO_GPU", (0, "NVIDIA H100 80GB HBM3", 85_018_279_936, 132, 9, 0))
    made.put("TARGET_INFO_CUDA_DEVICE", (0, 0, 10, "GPU-1", 132))
    made.put("TARGET_INFO_SYSTEM_ENV", (1, "Local (CLI)", "Hostname", 1, "node-3"))
    made.put("ThreadNames", (made.string("python"), None, tid_of(10, 1)))
    made.put("PROFILER_OVERHEAD", (700_000, 800_000, tid_of(10, 1), made.string("flush"), 3))
    made.put(
        "CUDA_GPU_MEMORY_USAGE_EVENTS", (600_000, tid_of(10, 0), 0, 4096, 2, 0), (650_000, tid_of(10, 0), 0, 1024, 2, 0)
    )
    made.put("DIAGNOSTIC_EVENT", (900_000, 2, "Not all events were kept"))
    made.put("SCHED_EVENTS", (1, 2, 1, tid_of(10, 1)))
    return made


def as_bytes() -> bytes:
    """The same as the file's bytes."""
    with tempfile.TemporaryDirectory() as folder:
        return everything().data(Path(folder))
