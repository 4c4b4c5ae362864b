"""What an export tells of the machine: devices, host, clock, threads, and what its profiler complained of."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from collectors.base import Lost
from collectors.device.kineto.span import EPOCH_NS
from collectors.reading.parquet_tables import ParquetTables
from collectors.reading.sqlite import NULL, ROWS, Database, Strings

_THREADS, _COMPLAINTS = 1 << 16, 1000
_SEVERITY = {0: "info", 1: "info", 2: "warning", 3: "error", 4: "info"}  # 4 is verbose
_VERSIONS = ("EXPORT_PRODUCT_VERSION", "EXPORT_SCHEMA_VERSION")
_NVTX = "NVTX_EVENTS"
_DEVICES = 1 << 16  # numbers of devices beyond it are damage


class Machine:
    """Of one export. `beside`: what a trace of PyTorch would tell beside its events; `lost`: what was left out."""

    def __init__(self, database: Database | ParquetTables):
        self._database = database
        self._counted: Counter[tuple[str, str]] = Counter()
        self._processes: dict[int, int] = {}
        self._cuda = self._cuda_devices()
        self._made_up: dict[tuple[int, int], int] = {}
        self._strings = Strings(database, "StringIds", "id", "value")
        self._epoch_ns = self._started()
        self.beside: dict[str, Any] = self._beside()

    @property
    def lost(self) -> list[Lost]:
        return [Lost(f"{count:,} {what}", why) for (what, why), count in self._counted.items()]

    def lose(self, what: str, why: str, count: int) -> None:
        if count:
            self._counted[what, why] += count

    def _beside(self) -> dict[str, Any]:
        gpus = self._database.rows(
            "TARGET_INFO_GPU", ("id", "name", "totalMemory", "smCount", "computeMajor", "computeMinor"), 1 << 10
        )
        names = ("id", "name", "totalGlobalMem", "numSms", "computeMajor", "computeMinor")
        devices = [dict(zip(names, row, strict=True)) for row in gpus]
        versions = dict(self._database.rows("META_DATA_EXPORT", ("name", "value"), 1 << 10))
        versions |= dict(self._database.rows("EXPORT_META_DATA", ("name", "value"), 1 << 10))
        told = {"nsys_" + k.lower(): v for k, v in versions.items() if k in _VERSIONS and isinstance(v, str)}
        machine = self._host()
        return {"deviceProperties": devices, "baseTimeNanoseconds": self._epoch_ns, "hostName": machine, **told}

    def _host(self) -> str | None:
        """Name of the machine that was profiled."""
        rows = self._database.rows("TARGET_INFO_SYSTEM_ENV", ("name", "value"), 1 << 12)
        found = (value for name, value in rows if name in ("Hostname", "HostName") and isinstance(value, str))
        return next((value.strip()[:80] for value in found if value.strip()), None)

    def _started(self) -> int | None:
        row = next(self._database.rows("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",), 1), None)
        if row is None:
            return None
        try:
            found = int(row[0])
        except (ValueError, TypeError, OverflowError):
            return None
        return found if 0 <= found < 1 << 62 else None  # times are added to it

    def _cuda_devices(self) -> dict[tuple[int, int], int]:
        """(process, its number for a device) -> the device of the machine."""
        rows = self._database.rows("TARGET_INFO_CUDA_DEVICE", ("pid", "cudaId", "gpuId"), 1 << 16)
        return {(p, c): g for p, c, g in rows if isinstance(p, int) and isinstance(c, int) and isinstance(g, int)}

    def numbered(self, process: np.ndarray) -> np.ndarray:
        """A small number for each process."""
        return self._each(process, lambda p: self._processes.setdefault(p, len(self._processes)))

    def device(self, process: np.ndarray, ordinal: np.ndarray, works: bool) -> np.ndarray:
        """Devices of the machine from each process's own numbers; `works`: rows of what devices executed.

        A process counts the devices that it sees from 0. Where the export does not say which those are, the devices of
        the first process keep its numbers, and those of others are taken for devices of their own. A row that is no
        work is on a device that its process works on, whatever number it tells.
        """
        pairs = np.stack([process, ordinal], axis=1)
        unique, inverse = np.unique(pairs, axis=0, return_inverse=True)
        found = [self._one(int(p), int(d), works) for p, d in unique.tolist()]
        return np.array(found, np.int64)[inverse.reshape(-1)] if found else ordinal

    def _one(self, process: int, ordinal: int, works: bool) -> int:
        ordinal = 0 if not 0 <= ordinal < _DEVICES else ordinal
        if (process, ordinal) in self._cuda:
            return self._cuda[process, ordinal]
        if not works and (process, ordinal) not in self._made_up:
            mine = [number for (p, _), number in self._made_up.items() if p == process]
            return min(mine, default=0)
        if (process, ordinal) not in self._made_up:
            taken = {*self._made_up.values(), *self._cuda.values()}
            self._made_up[process, ordinal] = ordinal if ordinal not in taken else max(taken) + 1
        return self._made_up[process, ordinal]

    @staticmethod
    def _each(values: np.ndarray, of: Any) -> np.ndarray:
        unique, inverse = np.unique(values, return_inverse=True)
        return np.array([of(int(v)) for v in unique], np.int64)[inverse] if len(unique) else np.zeros(0, np.int64)

    def string(self, key: int) -> str | None:
        """A text of the export by its number."""
        return self._strings.of(key)

    def ranges(
        self, columns: Sequence[str]
    ) -> Iterator[tuple[dict[str, np.ndarray], list[str | None], list[bytes | None]]]:
        """NVTX events: whole numbers by column, the text of each where the row holds it itself, and its payload."""
        rows: list[tuple] = []
        for row in self._database.rows(_NVTX, (*columns, "text", "binaryData"), 1 << 62):
            rows.append(row)
            if len(rows) >= ROWS:
                yield _split(rows, columns)
                rows = []
        if rows:
            yield _split(rows, columns)

    def thread_names(self) -> Iterator[tuple[int, str]]:
        """(thread, its name)."""
        for thread, key in self._database.rows("ThreadNames", ("globalTid", "nameId"), _THREADS):
            if isinstance(thread, int) and isinstance(key, int) and (name := self.string(key)):
                yield thread, name[:200]

    def complaints(self, source: str) -> Iterator[dict[str, Any]]:
        """Rows of `evidence`: what the profiler itself reported, such as events that it lost."""
        rows = self._database.rows("DIAGNOSTIC_EVENT", ("timestamp", "severity", "text"), _COMPLAINTS)
        for order, (at, severity, text) in enumerate(rows):
            if isinstance(text, str):
                yield {
                    "ts_ns": self._since_1970(at),
                    "severity": _SEVERITY.get(severity if isinstance(severity, int) else 0, "info"),
                    "text": " ".join(text.split())[:500],
                    "offset": None,
                    "order": order,
                    "source": source,
                }

    def _since_1970(self, at: Any) -> int | None:
        if not isinstance(at, int) or self._epoch_ns is None or not 0 <= at < 1 << 61:
            return None
        return at if at > EPOCH_NS else at + self._epoch_ns


def _split(
    rows: list[tuple], columns: Sequence[str]
) -> tuple[dict[str, np.ndarray], list[str | None], list[bytes | None]]:
    *numbers, texts, payloads = zip(*rows, strict=True)
    return (
        {n: np.fromiter(map(_int, v), np.int64, len(rows)) for n, v in zip(columns, numbers, strict=True)},
        [t if isinstance(t, str) else None for t in texts],
        [p if isinstance(p, bytes) else None for p in payloads],
    )


def _int(value: Any) -> int:
    return value if isinstance(value, int) else NULL
