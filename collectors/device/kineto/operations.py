"""Rows of `ops` and `op_stats`: operations of devices with what launched them, and those of host threads."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from collectors.base import Rows
from collectors.device.kineto import convolutions
from collectors.device.kineto.attention import attention
from collectors.device.kineto.convolutions import Convolutions
from collectors.device.kineto.device import (
    COLLECTIVE_LABEL,
    FRAME,
    GRAPH,
    KIND,
    NAME,
    ROW,
    SCOPE,
    SITE,
    Devices,
)
from collectors.device.kineto.gather import Gathered
from collectors.device.kineto.host import Host
from collectors.device.kineto.kernels import category, multiplies
from collectors.device.kineto.kinds import A_STEP, COPY, COUNTERS_OF, KERNEL, OTHER, SPAN, is_own, source_of
from collectors.device.kineto.launch_shapes import launch_shapes
from collectors.device.kineto.products import PROGRAM, Products
from collectors.device.kineto.scopes import Scopes
from collectors.device.kineto.shapes import Work, parsed, product, shown
from collectors.device.xplane.arrays import batch, coded, column, over
from runs.schema import SCHEMAS

_BATCH = 1 << 16


@dataclass(frozen=True)
class Call:
    """What a site is: the call's name, its tensors, the line it came from, and what it computes."""

    name: str
    shape: str | None
    source: str | None
    work: Work | None


class Calls:
    """Sites of calls, each described once."""

    def __init__(self, gathered: Gathered) -> None:
        self._gathered = gathered
        self._known: dict[int, Call] = {}

    def of(self, site: int) -> Call:
        """The call of a site's number."""
        if site not in self._known:
            name, dims, types, given, stack, _ = self._gathered.sites.rows[site].tolist()
            shapes, kinds, values = self._list(dims), self._list(types), self._list(given)
            called, texts = self._gathered.texts[name], self._gathered.texts
            self._known[site] = Call(
                called, shown(shapes, kinds), _own_line(texts[stack]), self._work(called, shapes, kinds, values)
            )
        return self._known[site]

    def _list(self, text: int) -> list[Any]:
        return parsed(self._gathered.texts.raw(text)) if text >= 0 else []

    def _work(self, called: str, shapes: list[Any], kinds: list[Any], values: list[Any]) -> Work | None:
        if called in convolutions.CALLS:
            return self._convolutions.work(called, shapes, kinds, values)
        if (made := product(called, shapes, kinds)) is not None:
            return Work(made.flops, made.bytes, product=made)
        return attention(called, shapes, kinds, values)

    @cached_property
    def _convolutions(self) -> Convolutions:
        sites, texts = self._gathered.sites.rows, self._gathered.texts
        names = [n for n in np.unique(sites[:, 0]).tolist() if texts[n] in convolutions.CALLS]
        chosen = sites[np.isin(sites[:, 0], names)][:, :2].tolist()
        return Convolutions((texts[name], self._list(dims)) for name, dims in chosen)


def _own_line(stack: str) -> str | None:
    """The innermost line of the job's own code in a call stack as earlier profilers print it, innermost first."""
    frames = stack.split(";") if stack else []
    return next((source_of(f) for f in frames if is_own(f)), None)


def device_ops(
    gathered: Gathered, devices: Devices, calls: Calls, capture: int, host: str, first: int
) -> Iterator[Rows]:
    """Operations of devices, numbered from `first`."""
    described = [_device_op(gathered, row, calls, devices.scopes) for row in devices.ops.tolist()]
    for op, shape in zip(described, launch_shapes(gathered, devices), strict=True):
        op["launch shape"] = shape
    carried = _carried(devices, described)
    products = Products()
    for d, calls_made in zip(described, carried.tolist(), strict=True):
        if d["work"] and calls_made:
            products.add(d["op"], d["work"], d["source"], calls_made, again=d["direction"] == "recompute")
    yield from products.rows(capture)
    for at in range(0, len(described), _BATCH):
        part = described[at : at + _BATCH]
        rows = slice(at, at + len(part))
        count = devices.count[rows]
        share = carried[rows] / np.maximum(count, 1)
        columns: dict[str, Any] = {
            name: [d[name] for d in part]
            for name in ("op", "role", "module", "category", "source", "shape", "line", "scope", "direction")
        }
        for name in ("flops", "bytes"):
            columns[name] = [
                None if d[name] is None or not s else d[name] * s for d, s in zip(part, share.tolist(), strict=True)
            ]
        yield Rows(
            "ops",
            batch(
                "ops",
                columns
                | {
                    "capture": [capture] * len(part),
                    "host": [host] * len(part),
                    "device": devices.number[devices.ops[rows, ROW]].tolist(),
                    "program": [
                        PROGRAM if d["work"] and s else None for d, s in zip(part, share.tolist(), strict=True)
                    ],
                    "op_id": over(pa.int64(), np.arange(first + at, first + at + len(part))),
                    "count": over(pa.int64(), count.astype(np.int64)),
                    "total_ns": over(pa.float64(), devices.total_ns[rows].copy()),
                    "self_ns": over(
                        pa.float64(), np.clip(devices.own_ns[rows].astype(float), 0, devices.total_ns[rows])
                    ),
                },
            ),
        )
    yield from _stats(described, capture, first)


def _device_op(gathered: Gathered, row: list[int], calls: Calls, scopes: Scopes) -> dict[str, Any]:
    texts = gathered.texts
    kernel = texts[row[NAME]]
    call = calls.of(row[SITE]) if row[SITE] >= 0 else None
    work = row[KIND] in (KERNEL, COPY)
    collective = row[COLLECTIVE_LABEL] >= 0
    name = kernel
    if collective:
        name = texts[row[COLLECTIVE_LABEL]]
    elif call and row[KIND] == KERNEL:
        name = call.name
    scope = scopes.of(row[SCOPE])
    module = scope.module
    source = source_of(texts[row[FRAME]]) if row[FRAME] >= 0 else call.source if call else None
    if row[GRAPH] >= 0 and call is None and module is None:
        module = texts[row[GRAPH]]
    kind = "collective" if collective else category(kernel, call.name if call else "", row[KIND] == COPY)
    made = call.work if call and work and not collective and kind != "copy" else None
    stream = gathered.rows.rows[row[ROW]].tolist()
    return {
        "op": name or None,
        "kernel": kernel if name != kernel else None,
        "launched": call.name if call and name != call.name else None,
        "role": "compute" if work else "other",
        "category": kind if work else "annotation" if row[KIND] in (SPAN, COUNTERS_OF) else "other",
        "module": module,
        "scope": scope.path,
        "direction": scope.direction,
        "source": source,
        "shape": call.shape if call and work else None,
        "line": _line(texts[stream[1]], "stream") if stream[1] >= 0 else _line(texts[stream[4]], _thread(gathered)),
        "flops": made.flops if made else None,
        "bytes": made.bytes if made else None,
        "work": made,
        "multiplies": multiplies(kernel),
    }


def _line(number: str, what: str) -> str:
    return number if number.startswith((what, "queue")) else f"{what} {number or '?'}"


def _thread(gathered: Gathered) -> str:
    return "stream" if gathered.calls is None else "thread"  # a CPU that stands in for a device has threads


def _carried(devices: Devices, described: list[dict[str, Any]]) -> np.ndarray:
    """How many calls each operation carries the FLOPs and bytes of: of the kernels of one call the one that multiplies,
    and of several such the longest, carries them all; where a call is several products, as many kernels share them."""
    kernels = np.array([d["work"].kernels if d["work"] else 0 for d in described], np.int64)
    out = np.zeros(len(described))
    chosen = np.flatnonzero(kernels[devices.op] > 0) if len(described) else np.zeros(0, np.int64)
    if not len(chosen):
        return out
    names = np.array([d["multiplies"] for d in described], bool)[devices.op[chosen]]
    dur, call = devices.events["dur"][chosen], devices.call[chosen]
    alone = np.where(
        call >= 0, call, -2 - devices.events["event"][chosen].astype(np.int64)
    )  # an event without a call is one by itself
    order = np.lexsort((-dur, ~names, alone))
    begins = np.flatnonzero(np.concatenate(([True], alone[order][1:] != alone[order][:-1])))
    sizes = np.diff(np.append(begins, len(order)))
    able = np.maximum(np.add.reduceat(names[order].astype(np.int64), begins), 1)  # those that multiply, else the first
    sharing = np.minimum(kernels[devices.op[chosen[order[begins]]]], able)
    place = np.arange(len(order)) - np.repeat(begins, sizes)
    shares = np.repeat(sharing, sizes)
    carries = place < shares
    np.add.at(out, devices.op[chosen[order[carries]]], 1.0 / shares[carries])
    return out


def _stats(described: list[dict[str, Any]], capture: int, first: int) -> Iterator[Rows]:
    names = {"kernel": "kernel", "launched": "launched by", "launch shape": "launch shape"}
    told = [(first + n, name, d[name]) for n, d in enumerate(described) for name in names if d[name]]
    for at in range(0, len(told), _BATCH):
        part = told[at : at + _BATCH]
        yield Rows(
            "op_stats",
            batch(
                "op_stats",
                {
                    "capture": [capture] * len(part),
                    "op_id": [n for n, _, _ in part],
                    "name": [names[name] for _, name, _ in part],
                    "text_value": [text for _, _, text in part],
                },
            ),
        )


def host_ops(gathered: Gathered, host: Host, lines: Mapping[int, str], capture: int, name: str) -> Iterator[Rows]:
    """Operations of host threads, numbered from 0."""
    schema = SCHEMAS["ops"].arrow
    for at in range(0, len(gathered.ops), _BATCH):
        rows = gathered.ops.rows[at : at + _BATCH]
        n = len(rows)
        used, codes = np.unique(rows[:, 1], return_inverse=True)
        shown_as = rows[:, 2]
        kinds = np.where(shown_as == A_STEP, 0, np.where(shown_as == OTHER, 2, 1)).astype(np.int32)
        part = slice(at, at + n)
        total = host.total_ns[part]
        threads, thread = np.unique(rows[:, 0], return_inverse=True)
        yield Rows(
            "ops",
            batch(
                "ops",
                {
                    "capture": [capture] * n,
                    "host": column(schema.field("host").type, [name], np.zeros(n, np.int64)),
                    "line": coded(thread.reshape(-1).astype(np.int32), [lines[t] for t in threads.tolist()]),
                    "role": coded(kinds, ["host", "host", "other"]),
                    "category": coded(kinds, ["annotation", "host", "other"]),
                    "op": coded(
                        np.where(used[codes.reshape(-1)] == -1, -1, codes.reshape(-1)).astype(np.int32),
                        [gathered.texts[c] for c in used.tolist()],
                    ),
                    "op_id": over(pa.int64(), np.arange(at, at + n)),
                    "count": over(pa.int64(), host.count[part].copy()),
                    "total_ns": over(pa.float64(), total.copy()),
                    "self_ns": over(pa.float64(), np.clip(host.own_ns[part].astype(float), 0, total)),
                },
            ),
        )
