"""What rpd2tracing makes of an `.rpd` for a viewer, as events: Chrome's JSON without categories, times in whole
microseconds. What a row is stands in its process's name (`GPU2`) and in `desc`, the kind of an operation."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from collectors.base import Lost, Source
from collectors.device.kineto import columns
from collectors.device.kineto.columns import Batch, Stats
from collectors.device.kineto.stream import Stream
from collectors.device.kineto.texts import Texts
from collectors.device.made import Maker
from collectors.device.rocm.filling import EXPECTED, beside_of_rocm
from collectors.device.rocm.names import OTHER, RANGE, call_kind, copy_name, operation_kind

_GPU = re.compile(r"^GPU\s*\d+$")
_FRAME = "UserMarker frame"  # around operations of one marker, made for the viewer
_SPAN = "gpu_user_annotation"
_LEFT_OUT = {
    "C": ("values of counters", "they are made for a viewer; the .rpd holds those that were measured"),
    "stf": ("arrows", "they name no call: the .rpd itself tells which call launched what"),
}


class RpdJsonStream:
    """One file as a stream of events; the same as its `.rpd`, but for launches and for fractions of microseconds."""

    expected = f"what rpd2tracing wrote, with {EXPECTED}"

    def __init__(self, source: Source):
        self._stream = Stream(source)
        self._maker = Maker(self._stream.texts)
        self._gpus: set[int] = set()
        self._counted: Counter[str] = Counter()
        self._desc = self._maker.text("desc")
        self._process_name = self._maker.text("process_name")
        self._kinds: dict[tuple[bool, int, int], tuple[int, int]] = {}

    @property
    def texts(self) -> Texts:
        return self._stream.texts

    @property
    def beside(self) -> dict[str, Any]:
        return beside_of_rocm([], None)

    @property
    def lost(self) -> list[Lost]:
        told = [Lost(f"{self._counted[k]:,} {what}", why) for k, (what, why) in _LEFT_OUT.items() if self._counted[k]]
        told.append(Lost("fractions of a microsecond", "rpd2tracing leaves them out; the .rpd holds them"))
        if not self._stream.closed and all(lost.offset is None for lost in self._stream.lost):
            told.append(Lost("the end of the file", "the list of its events is not closed"))
        return [*self._stream.lost, *told]

    def batches(self) -> Iterator[tuple[Batch, Stats]]:
        """All events, with categories."""
        for events, stats in self._stream.batches():
            kept = np.ones(len(events.phase), bool)
            for letters in _LEFT_OUT:
                left = np.isin(events.phase, [ord(c) for c in letters])
                self._counted[letters] += int(left.sum())
                kept &= ~left
            kept &= ~((events.phase == 0) & (events.name < 0))  # the empty object at the beginning
            desc = np.full(len(kept), -1, np.int64)
            told = stats.name == self._desc
            desc[np.searchsorted(events.ordinal, stats.event[told])] = np.where(
                stats.kind[told] == columns.WORD, stats.value[told], -1
            )
            yield self._categorised(Batch(*(c[kept] for c in events)), desc[kept]), stats

    def _categorised(self, events: Batch, desc: np.ndarray) -> Batch:
        self._note_gpus(events)
        on_gpu = np.isin(events.pid, list(self._gpus))
        keys = np.stack([on_gpu, events.name, desc], axis=1).astype(np.int64)
        unique, inverse = np.unique(keys, axis=0, return_inverse=True)
        found = [self._kind(bool(gpu), name, what) for gpu, name, what in unique.tolist()]
        table = np.array(found, np.int64).reshape(-1, 2)[inverse.reshape(-1)]
        timed = np.isin(events.phase, (ord("X"), ord("i")))
        events.cat[timed], events.name[timed] = table[timed, 0], table[timed, 1]
        at = np.flatnonzero(on_gpu & timed)
        events.args[at, columns.STREAM] = events.tid[at] = self._lines(events.tid[at])
        at = np.flatnonzero(~on_gpu & timed & (events.cat == self._maker.text(RANGE)))
        if len(at):
            part = Batch(*(c[at] for c in events))
            self._maker.ranged(part, [self.texts[n] for n in part.name.tolist()])
            for whole, mine in zip(events, part, strict=True):
                whole[at] = mine
        return events

    def _note_gpus(self, events: Batch) -> None:
        named = np.flatnonzero((events.phase == ord("M")) & (events.name == self._process_name))
        for i in named.tolist():
            if _GPU.match(self.texts[int(events.args[i, columns.ROW_NAME])]):
                self._gpus.add(int(events.pid[i]))

    def _kind(self, gpu: bool, name: int, desc: int) -> tuple[int, int]:
        """(number of the text of the category, of the name) of events of a name and a description."""
        if (gpu, name, desc) not in self._kinds:
            called, told = self.texts[name], self.texts[desc]
            cat = self._of_device(told) if gpu else self._of_host(called, told)
            if gpu and cat == "gpu_memcpy":
                called = copy_name(called)
            self._kinds[gpu, name, desc] = self._maker.text(cat), self._maker.text(called) if name >= 0 else name
        return self._kinds[gpu, name, desc]

    @staticmethod
    def _of_device(desc: str) -> str:
        return _SPAN if not desc or desc.startswith(_FRAME) else operation_kind(desc)

    @staticmethod
    def _of_host(name: str, desc: str) -> str:
        kind = call_kind("", name)
        return RANGE if kind == OTHER and name == desc else kind

    def _lines(self, tids: np.ndarray) -> np.ndarray:
        return self._maker.texts_of("queue", tids.astype(np.int64), lambda n: f"queue {self.texts[n]}")
