"""A database of rocmProfileData as events: the same reader makes tables of them as of a trace of PyTorch.

rocpd_op, rocpd_api_ops   what devices executed, and which call each was made for
rocpd_api, ext_autogradapi   calls of HIP; markers, of which some are operators of PyTorch
rocpd_copyapi             sizes of copies
rocpd_monitor             clocks and the like of devices, as samples
"""

from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np

from collectors.base import Item, Lost, Rows, Source
from collectors.device.kineto import columns
from collectors.device.kineto.columns import Batch, Stats
from collectors.device.kineto.tokens import NONE
from collectors.device.rocm.filling import EXPECTED, Filling
from collectors.device.rocm.names import RANGE, call_kind, copy_name, operation_kind
from collectors.device.xplane.arrays import batch
from collectors.reading.keyed import Keyed
from collectors.reading.sqlite import NULL, Database, Strings

_OP, _API = "rocpd_op", "rocpd_api"
_AUTOGRAD = "ext_autogradapi"
_MARKER = "UserMarker"
_SAMPLES = 1 << 20
_CLOCKS = ("sclk", "mclk", "fclk", "socclk")  # frequencies, which rocm-smi tells in MHz
_LEFT_OUT = {
    "ext_callstack": "calls within calls are told by their times",
    "rocpd_op_inputSignals": "what waited for what is not read",
    "rocpd_barrierop": "what they waited for is not read",
}
Made = Iterator[tuple[Batch, Stats]]


class RpdStream:
    """One database as a stream of events, as `kineto.stream.Stream` is one of a trace."""

    expected = f"a database of rocmProfileData with {EXPECTED}"

    def __init__(self, source: Source):
        self._source = source
        self._database = Database(source, "a whole database of rocmProfileData", "Profile again, and let the job end")
        self._fill = Filling()
        self.texts = self._fill.maker.texts
        self._words: dict[tuple[str, int], int] = {}
        self._left_out: list[Lost] = []

    def __enter__(self) -> Self:
        self._database.__enter__()
        self._strings = Strings(self._database, "rocpd_string", "id", "string")
        self._sizes_of = Strings(self._database, _AUTOGRAD, "api_ptr_id", "sizes")
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    @property
    def beside(self) -> dict[str, Any]:
        return self._fill.beside(None)

    @property
    def lost(self) -> list[Lost]:
        return [*self._database.lost, *self._left_out]

    def batches(self) -> Made:
        """All events: of devices, then of threads."""
        if not any(self._database.has(table, "start", "end") for table in (_OP, _API)):
            raise self._database.unreadable(ValueError("it holds neither rocpd_op nor rocpd_api"))
        yield from self._operations()
        yield from self._calls()
        for table, why in _LEFT_OUT.items():
            if count := self._database.count(table):
                self._left_out.append(Lost(f"{count:,} rows of {table}", why))

    def _keyed(self, table: str, key: str, *told: str) -> Keyed:
        return Keyed(self._database.numbers(table, (key, *told)), key, told)

    def _operations(self) -> Made:
        calls = self._keyed("rocpd_api_ops", "op_id", "api_id")
        copies = self._keyed("rocpd_copyapi", "api_ptr_id", "size")
        wanted = ("id", "gpuId", "queueId", "start", "end", "description_id", "opType_id")
        for rows in self._database.numbers(_OP, wanted):
            call = calls.of("api_id", rows["id"])
            cat = self._named("cat", rows["opType_id"], lambda k: operation_kind(self._string(k) or ""))
            copied = cat == self._fill.maker.text("gpu_memcpy")
            size = np.where(copied, copies.of("size", call), NULL)
            yield self._fill.executed(
                cat,
                (rows["start"], rows["end"]),
                self._operation_names(rows["description_id"], rows["opType_id"]),
                np.where(rows["gpuId"] == NULL, 0, rows["gpuId"]),
                self._fill.lines(np.full(len(call), NULL), rows["queueId"]),
                self._correlation(call),
                size,
            )

    def _operation_names(self, description: np.ndarray, kind: np.ndarray) -> np.ndarray:
        """The kernel's name, else that of the kind of operation."""
        kinds = self._named("kind", kind, lambda k: copy_name(self._string(k) or "operation of no name"))
        described = self._named("text", description, lambda k: self._string(k) or "")
        return np.where(described == self._fill.maker.text(""), kinds, described)

    def _calls(self) -> Made:
        operators = self._keyed(_AUTOGRAD, "api_ptr_id", "autogradName_id", "seq")
        wanted = ("id", "pid", "tid", "start", "end", "apiName_id", "args_id")
        for rows in self._database.numbers(_API, wanted):
            at_operator = operators.place(rows["id"]) >= 0
            cat = self._named("call", rows["apiName_id"], self._kind)
            ranged = (cat == self._fill.maker.text(RANGE)) | at_operator
            at = np.flatnonzero(ranged)
            if len(at):
                yield self._ranges({n: v[at] for n, v in rows.items()}, at_operator[at], operators)
            at = np.flatnonzero(~ranged)
            yield self._fill.called(
                cat[at],
                (rows["start"][at], rows["end"][at]),
                self._named("name", rows["apiName_id"][at], lambda k: self._string(k) or "call of no name"),
                rows["pid"][at],
                rows["tid"][at],
                self._correlation(rows["id"][at]),
            )

    def _kind(self, key: int) -> str:
        name = self._string(key) or ""
        return RANGE if name == _MARKER else call_kind("", name)

    def _ranges(self, rows: dict[str, np.ndarray], operator: np.ndarray, operators: Keyed) -> tuple[Batch, Stats]:
        """Markers: what a program named, and calls of PyTorch's operators with their tensors' sizes."""
        names = zip(rows["args_id"].tolist(), rows["apiName_id"].tolist(), strict=True)
        texts = [self._string(args) or self._string(name) or "range of no name" for args, name in names]
        made, stats = self._fill.ranged((rows["start"], rows["end"]), texts, rows["pid"], rows["tid"])
        at = np.flatnonzero(operator)
        made.cat[at] = self._fill.maker.text("cpu_op")
        made.phase[at] = ord("X")  # an operator of no duration is none the less a call
        sequence = operators.of("seq", rows["id"][at])
        made.args[at, columns.SEQUENCE] = np.where(sequence > 0, sequence, NONE)
        made.args[at, columns.DIMS] = [self._sizes(key) for key in rows["id"][at].tolist()]
        return made, stats

    def _sizes(self, key: int) -> int:
        sizes = self._sizes_of.of(key)
        return self.texts.of(sizes) if sizes and sizes.startswith("[") else int(NONE)

    def _string(self, key: int) -> str | None:
        return None if key == NULL else self._strings.of(key)

    def _named(self, kind: str, keys: np.ndarray, of: Callable[[int], str]) -> np.ndarray:
        """Numbers of the texts of whole numbers."""
        return self._fill.maker.texts_of(kind, keys, of)

    @staticmethod
    def _correlation(call: np.ndarray) -> np.ndarray:
        """Calls have numbers of their own in the whole file, whatever their process."""
        return np.where((call != NULL) & (call > 0), call, NONE)

    def samples(self) -> Iterator[Item]:
        """What the file tells of devices while it was recorded: each value from when it was first seen."""
        wanted = ("deviceType", "deviceId", "monitorType", "start", "value")
        rows = [row for row in map(_sample, self._database.rows("rocpd_monitor", wanted, _SAMPLES)) if row]
        if rows:
            ts, names, values, units = zip(*rows, strict=True)
            told = {"ts_ns": ts, "name": names, "value": values, "unit": units}
            yield Rows("scalars", batch("scalars", told | {"source": [self._source.name] * len(rows)}))


def _sample(row: tuple) -> tuple[int, str, float, str | None] | None:
    kind, device, what, start, value = row
    if not isinstance(start, int) or not isinstance(what, str) or not isinstance(device, int):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    name = f"{str(kind)[:20]} {device} {what[:60]}"
    return (start, name, number, "MHz" if what in _CLOCKS else None) if np.isfinite(number) else None
