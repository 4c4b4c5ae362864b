"""Events of AMD's profilers from columns, one way for all of their files: what devices executed, calls, ranges."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from collectors.device.kineto import columns
from collectors.device.kineto.columns import Batch, Stats, new_stats
from collectors.device.kineto.texts import Texts
from collectors.device.kineto.tokens import NONE
from collectors.device.made import Maker
from collectors.device.nccl import Calls, annotations
from collectors.device.rocm.agents import Agents
from collectors.reading.sqlite import NULL

_CORRELATIONS = 1 << 40  # numbers of calls of one process that are told apart
_PROCESSES = 1 << 20
Times = tuple[np.ndarray, np.ndarray]
EXPECTED = "kernels, copies, calls or ranges that AMD's profiler recorded"


class Filling:
    """`maker` keeps the texts; `agents` the devices."""

    def __init__(self) -> None:
        self.maker = Maker()
        self.agents = Agents()
        self._rccl = Calls()

    def executed(
        self,
        cat: str | np.ndarray,
        times: Times,
        name: np.ndarray,
        device: np.ndarray,
        line: np.ndarray,
        correlation: np.ndarray,
        size: np.ndarray | None = None,
    ) -> tuple[Batch, Stats]:
        """What devices executed. `cat`: the category, or the number of its text for each; `name` and `line`: numbers of
        texts; `size`: bytes, where they are told."""
        made = self.maker.timed(cat if isinstance(cat, str) else "kernel", *times)
        if not isinstance(cat, str):
            made.cat[:] = cat
        made.name[:] = name
        made.args[:, columns.DEVICE] = device
        made.args[:, columns.STREAM] = line
        made.args[:, columns.CORRELATION] = correlation
        made.pid[:] = self.maker.texts_of("", device, str)
        made.tid[:] = line
        return made, self.maker.amounts(made, "bytes", size)

    def called(
        self,
        cat: np.ndarray,
        times: Times,
        name: np.ndarray,
        process: np.ndarray,
        thread: np.ndarray,
        correlation: np.ndarray,
        size: np.ndarray | None = None,
    ) -> tuple[Batch, Stats]:
        """What threads of hosts did. `cat`: number of the category's text of each."""
        made = self.maker.timed("rocm", *times)
        made.cat[:] = cat
        made.name[:] = name
        made.args[:, columns.CORRELATION] = correlation
        self.threads(made, process, thread)
        return made, self.maker.amounts(made, "bytes", size)

    def ranged(
        self, times: Times, texts: Sequence[str], process: np.ndarray, thread: np.ndarray
    ) -> tuple[Batch, Stats]:
        """Ranges that a program named by ROCTX; a mark, which ends when it begins, as an instant."""
        made = self.maker.timed("nvtx", *times)
        made.phase[made.dur == 0] = ord("i")
        self.threads(made, process, thread)
        self.maker.ranged(made, texts)
        return made, new_stats(0)

    def hold_rccl(self, chosen: np.ndarray, times: Times, name: np.ndarray, whose: Times) -> np.ndarray:
        """Holds calls of RCCL until `rccl` is asked for them, since what a group launched stands in its other calls.
        Returns which of the chosen it took: those that have a time, as long as there is room."""
        start, end = times
        taken = chosen & (start != NULL) & (end != NULL) & (end >= start)
        at = np.flatnonzero(taken) if not self._rccl.full else np.zeros(0, np.int64)
        rows = zip(*(c[at].tolist() for c in (start, end, name, *whose)), strict=True)
        for begin, stop, named, process, thread in rows:
            self._rccl.add(begin, stop, thread, self.texts[named], process=process)
        taken[:] = False
        taken[at] = True
        return taken

    def rccl(self) -> tuple[Batch, Stats]:
        """The calls of RCCL that were held, as annotations around what they launched."""
        calls = list(self._rccl.told())
        made = annotations(self.maker, calls)
        process, thread = (np.array([getattr(c, n) for c in calls], np.int64) for n in ("process", "thread"))
        self.threads(made, process, thread)
        return made, new_stats(0)

    @property
    def texts(self) -> Texts:
        return self.maker.texts

    def threads(self, made: Batch, process: np.ndarray, thread: np.ndarray) -> None:
        """Whose events they are."""
        made.pid[:] = self.maker.texts_of("p", process, _number)
        made.tid[:] = self.maker.texts_of("t", thread, _number)

    def thread_names(self, named: Sequence[tuple[int, int, str]]) -> tuple[Batch, Stats]:
        """(process, thread, name) as the names of rows that a trace has."""
        made = self.maker.names("thread_name", len(named))
        table = np.array([row[:2] for row in named], np.int64).reshape(-1, 2)
        self.threads(made, table[:, 0], table[:, 1])
        made.args[:, columns.ROW_NAME] = [self.maker.text(name) for *_, name in named]
        return made, new_stats(0)

    def lines(self, stream: np.ndarray, queue: np.ndarray, process: int = 0) -> np.ndarray:
        """Numbers of the names of the lines on which a device executes: its stream, and the queue that served it where
        that is told, since kernels of several queues may all be told to be of the default stream; each process numbers
        its own."""
        pairs, inverse = np.unique(np.stack([stream, queue], axis=1), axis=0, return_inverse=True)
        found = [
            self.maker.text(_line(s, q) + (f" of process {process}" if process else "")) for s, q in pairs.tolist()
        ]
        return np.array(found, np.int64)[inverse.reshape(-1)] if found else np.zeros(0, np.int64)

    def joined(self, process: int, number: np.ndarray) -> np.ndarray:
        """Correlation numbers that are of one process alone; NONE where there is none."""
        told = (number != NULL) & (number > 0) & (number < _CORRELATIONS) & (process < _PROCESSES)
        return np.where(told, process * _CORRELATIONS + np.where(told, number, 0), NONE)

    def beside(self, machine: str | None) -> dict[str, Any]:
        """What stands beside the events."""
        return beside_of_rocm(self.agents.properties, machine)


def beside_of_rocm(devices: list[dict[str, Any]], machine: str | None) -> dict[str, Any]:
    """What stands beside events, as a trace of PyTorch on ROCm names it. Which version of the profiler it was is not
    told: that it was AMD's is."""
    return {"deviceProperties": devices, "hostName": machine, "rocprofiler-sdk_version": None}


def _number(value: int) -> str:
    return "unknown" if value == NULL else str(value)


def _line(stream: int, queue: int) -> str:
    if stream == NULL:
        return "queue unknown" if queue == NULL else f"queue {queue}"
    return f"stream {stream}" if queue == NULL else f"stream {stream}, queue {queue}"
