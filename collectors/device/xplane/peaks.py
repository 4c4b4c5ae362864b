"""Whether anything beats a peak that the trace states: then a time, a cost or the peak is wrong, and it is said.

    least time of a run = max(bytes in the device's memory / stated bytes per second, FLOPs / stated FLOP/s)

Left out is what may well seem faster: halves of asynchronous operations, whose bytes move while other work runs;
collectives; bytes that lie in on-chip memory, as far as the trace tells where they lie; products of 8 bits and fewer,
which have a peak of their own that traces do not state. A run counts where it took less than 0.99 of its least time and
2 ns, the step of a device's clock.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from google.protobuf.message import DecodeError

from collectors.base import Lost
from collectors.device.xplane.ops import Op
from collectors.device.xplane.planes import EventName, Value
from collectors.device.xplane.tables import Ops
from collectors.reading.protobuf import message_types
from runs.memory_spaces import HBM, STAT

_SHARE, _CLOCK_PS = 0.99, 2000.0
_HALF = re.compile(r"(?:^|-)(?:start|done|update)(?:\.\d+)?$")
_NARROW = re.compile(r"\b(?:[su][248]|f[48]e\w+)\[")
_ON_CHIP = re.compile(r"S\([1-46-9]\)")  # 0 is the device's memory and not printed, 5 the host's
_NOT_TIMED = ("collective", "control", "annotation", "host", "infeed", "outfeed")
_ACCESS = message_types(
    "chipledger.access", "Breakdown: Access* accesses=1\nAccess: int64 kind=1, int64 space=2, int64 bytes=3"
)


@dataclass(frozen=True)
class Stated:
    """Peaks of one device as its plane states them; 0 where it does not."""

    bytes_per_s: float = 0.0
    flops_per_s: float = 0.0

    def least_ps(self, moved: float | None, flops: float | None) -> float:
        """Least time of one run."""
        by_bytes = (moved or 0.0) / self.bytes_per_s if self.bytes_per_s else 0.0
        by_flops = (flops or 0.0) / self.flops_per_s if self.flops_per_s else 0.0
        return max(by_bytes, by_flops) * 1e12

    def words(self) -> str:
        parts = [f"{self.bytes_per_s / 1e9:,.0f} GB/s"] * bool(self.bytes_per_s)
        parts += [f"{self.flops_per_s / 1e12:,.0f} TFLOP/s"] * bool(self.flops_per_s)
        return " and ".join(parts)


def stated(stats: dict[str, Value]) -> Stated:
    """The peaks among the stats of a plane."""

    def number(name: str, unit: float) -> float:
        value = stats.get(name)
        return float(value) * unit if isinstance(value, int | float) and value > 0 else 0.0

    moved = number("peak_hbm_bw_gigabytes_per_second", 1e9) or number("memory_bandwidth", 1.0)
    return Stated(moved, number("peak_teraflops_per_second", 1e12))


def memory_bytes(op: Op, event: EventName) -> float | None:
    """Bytes that one run moves to and from the device's memory; None where that cannot be told from on-chip memory."""
    raw = event.get(STAT)
    if isinstance(raw, bytes) and raw:
        try:
            accesses = _ACCESS["Breakdown"].FromString(raw).accesses
        except DecodeError:
            return None
        return float(sum(a.bytes for a in accesses if a.space == HBM and a.bytes > 0))
    return None if _ON_CHIP.search(event.name) else op.bytes


def least_ps(peaks: Stated, op: Op, event: EventName) -> float:
    """Least time of one run of an operation, 0 where it is not held against a peak."""
    opcode = event.get("hlo_category")
    if op.role != "compute" or op.category in _NOT_TIMED or _HALF.search(op.name or ""):
        return 0.0
    if isinstance(opcode, str) and _HALF.search(opcode):
        return 0.0
    return peaks.least_ps(memory_bytes(op, event), None if _NARROW.search(event.name) else op.flops)


@dataclass
class _Worst:
    name: str = ""
    least_ps: float = 0.0
    took_ps: float = 0.0
    words: str = ""

    def meet(self, name: str, least_ps: float, took_ps: float, words: str) -> None:
        if least_ps * max(self.took_ps, 1.0) > self.least_ps * max(took_ps, 1.0):
            self.name, self.least_ps, self.took_ps, self.words = name, least_ps, took_ps, words


class PeakCheck:
    """Counts runs that took less than their least time, while lines are read."""

    def __init__(self) -> None:
        self._peaks = Stated()
        self._limit = np.zeros(1024)  # by operation: ps below which a run beats a peak
        self._over = np.zeros(1024, np.int64)  # by operation: runs below it
        self._names: dict[int, tuple[str, float, Stated]] = {}
        self._kernels: dict[int, tuple[tuple, float, Stated]] = {}  # by operation: what it is a kernel of
        self._worst = _Worst()

    def plane(self, stats: dict[str, Value]) -> None:
        """Must be called before the lines of a device's plane are read."""
        self._peaks = stated(stats)

    def enter(self, number: int, op: Op, event: EventName) -> None:
        """Enters an operation that one event is one run of."""
        if number >= len(self._limit):
            more = max(number + 1, 2 * len(self._limit)) - len(self._limit)
            self._limit = np.concatenate([self._limit, np.zeros(more)])
            self._over = np.concatenate([self._over, np.zeros(more, np.int64)])
        least = least_ps(self._peaks, op, event)
        self._limit[number] = _limit(least)
        if least:
            self._names[number] = (op.name or event.name, least, self._peaks)

    def enter_kernel(self, number: int, op: Op) -> None:
        """Enters one of the kernels that an HLO operation of a GPU may have."""
        if op.role == "compute" and op.category not in _NOT_TIMED and (least := self._peaks.least_ps(op.bytes, None)):
            self._kernels[number] = ((op.device, op.module, op.program, op.name), least, self._peaks)

    def took(self, op: np.ndarray, dur: np.ndarray) -> None:
        """Holds runs against the least time of their operations."""
        if not self._names:
            return
        over = np.flatnonzero(dur < self._limit[op])
        if not len(over):
            return
        which, runs = np.unique(op[over], return_counts=True)
        self._over[which] += runs
        for number in which.tolist():
            name, least, peaks = self._names[number]
            self._worst.meet(name, least, float(dur[over][op[over] == number].min()), peaks.words())

    def told(self, sums: Ops) -> Iterator[Lost]:
        """One loss for all that beat a peak."""
        numbers = np.flatnonzero(self._over)
        ops, over, runs = len(numbers), int(self._over.sum()), int(sums.count[numbers].sum())
        for name, least, took, count, peaks in self._hlo_operations(sums):
            if took < _limit(least):
                ops, over, runs = ops + 1, over + count, runs + count
                self._worst.meet(name, least, took, peaks.words())
        if not over:
            return
        worst = self._worst
        yield Lost(
            "rates of operations",
            f"{over:,} of {runs:,} runs of {ops:,} operations were faster than the peak that the trace states "
            f"({worst.words}) allows; the furthest is {worst.name}: {worst.took_ps / 1e9:.3f} ms, where its bytes and "
            f"FLOPs need {worst.least_ps / 1e9:.3f} ms. Their times or costs are wrong, some of their data lay in "
            "caches, or the stated peak is too low: conclude nothing from rates above it",
        )

    def _hlo_operations(self, sums: Ops) -> Iterator[tuple[str, float, float, int, Stated]]:
        """(name, least ps, mean ps, runs, peaks) of each HLO operation of GPUs: its kernels share its bytes."""
        total: dict[tuple, float] = {}
        runs: dict[tuple, int] = {}
        of: dict[tuple, tuple[float, Stated]] = {}
        for number, (key, least, peaks) in self._kernels.items():
            total[key] = total.get(key, 0.0) + float(sums.total[number])
            runs[key] = max(runs.get(key, 0), int(sums.count[number]))
            of[key] = (least, peaks)
        for key, (least, peaks) in of.items():
            if runs[key]:
                yield str(key[-1]), least, total[key] / runs[key], runs[key], peaks


def _limit(least_ps: float) -> float:
    return max(_SHARE * least_ps - _CLOCK_PS, 0.0)
