"""Rows of `ops` and `op_stats`: operations of devices with what launched them, and those of host threads."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from collectors.base import Rows
from collectors.device.kineto.device import (
    COLLECTIVE_LABEL,
    FRAME,
    GRAPH,
    KIND,
    MODULE,
    NAME,
    ROW,
    SITE,
    Devices,
)
from collectors.device.kineto.gather import Gathered
from collectors.device.kineto.host import Host
from collectors.device.kineto.kernels import category, multiplies
from collectors.device.kineto.kinds import A_STEP, COPY, COUNTERS_OF, KERNEL, OTHER, SPAN, is_own, module_of, source_of
from collectors.device.kineto.products import PROGRAM, Products
from collectors.device.kineto.shapes import Product, parsed, product, shown
from collectors.device.xplane.arrays import batch, coded, column, over
from runs.schema import SCHEMAS

_BATCH = 1 << 16


@dataclass(frozen=True)
class Call:
    """What a site is: the call's name, its tensors, the line it came from, the matrix product that it makes."""

    name: str
    shape: str | None
    source: str | None
    product: Product | None


class Calls:
    """Sites of calls, each described once."""

    def __init__(self, gathered: Gathered) -> None:
        self._gathered = gathered
        self._known: dict[int, Call] = {}

    def of(self, site: int) -> Call:
        """The call of a site's number."""
        if site not in self._known:
            name, dims, types, stack, _ = self._gathered.sites.rows[site].tolist()
            texts = self._gathered.texts
            shapes = parsed(texts.raw(dims)) if dims >= 0 else []
            kinds = parsed(texts.raw(types)) if types >= 0 else []
            called = texts[name]
            self._known[site] = Call(
                called, shown(shapes, kinds), _own_line(texts[stack]), product(called, shapes, kinds)
            )
        return self._known[site]


def _own_line(stack: str) -> str | None:
    """The innermost line of the job's own code in a call stack as earlier profilers print it, innermost first."""
    frames = stack.split(";") if stack else []
    return next((source_of(f) for f in frames if is_own(f)), None)


def device_ops(
    gathered: Gathered, devices: Devices, calls: Calls, capture: int, host: str, first: int
) -> Iterator[Rows]:
    """Operations of devices, numbered from `first`."""
    described = [_device_op(gathered, row, calls) for row in devices.ops.tolist()]
    carried = _carried(devices, described)
    products = Products()
    for d, calls_made in zip(described, carried.tolist(), strict=True):
        if d["product"] and calls_made:
            products.add(d["op"], d["product"], d["source"], calls_made)
    yield from products.rows(capture)
    for at in range(0, len(described), _BATCH):
        part = described[at : at + _BATCH]
        rows = slice(at, at + len(part))
        count = devices.count[rows]
        share = carried[rows] / np.maximum(count, 1)
        columns: dict[str, Any] = {
            name: [d[name] for d in part] for name in ("op", "role", "module", "category", "source", "shape", "line")
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
                        PROGRAM if d["product"] and s else None for d, s in zip(part, share.tolist(), strict=True)
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


def _device_op(gathered: Gathered, row: list[int], calls: Calls) -> dict[str, Any]:
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
    module = module_of(texts[row[MODULE]]) if row[MODULE] >= 0 else None
    source = source_of(texts[row[FRAME]]) if row[FRAME] >= 0 else call.source if call else None
    if row[GRAPH] >= 0:
        module = texts[row[GRAPH]]
    kind = "collective" if collective else category(kernel, call.name if call else "", row[KIND] == COPY)
    made = call.product if call and work and not collective and kind != "copy" else None
    stream = gathered.rows.rows[row[ROW]].tolist()
    return {
        "op": name or None,
        "kernel": kernel if name != kernel else None,
        "launched": call.name if call and name != call.name else None,
        "role": "compute" if work else "other",
        "category": kind if work else "annotation" if row[KIND] in (SPAN, COUNTERS_OF) else "other",
        "module": module,
        "source": source,
        "shape": call.shape if call and work else None,
        "line": _line(texts[stream[1]] if stream[1] >= 0 else texts[stream[4]] if stream[4] >= 0 else "?"),
        "flops": made.flops if made else None,
        "bytes": made.bytes if made else None,
        "product": made,
        "multiplies": multiplies(kernel),
    }


def _line(stream: str) -> str:
    return stream if stream.startswith("stream") else f"stream {stream}"


def _carried(devices: Devices, described: list[dict[str, Any]]) -> np.ndarray:
    """How many calls each operation carries the FLOPs and bytes of: of the kernels of one call the one that multiplies,
    and of several such the longest, carries them all."""
    able = np.array([d["product"] is not None for d in described], bool)
    out = np.zeros(len(described))
    chosen = np.flatnonzero(able[devices.op]) if len(described) else np.zeros(0, np.int64)
    if not len(chosen):
        return out
    names = np.array([d["multiplies"] for d in described], bool)[devices.op[chosen]]
    dur, call = devices.events["dur"][chosen], devices.call[chosen]
    alone = np.where(
        call >= 0, call, -2 - devices.events["event"][chosen].astype(np.int64)
    )  # an event without a call is one by itself
    order = np.lexsort((-dur, ~names, alone))
    first = np.concatenate(([True], alone[order][1:] != alone[order][:-1]))
    np.add.at(out, devices.op[chosen[order[first]]], 1.0)
    return out


def _stats(described: list[dict[str, Any]], capture: int, first: int) -> Iterator[Rows]:
    told = [(first + n, name, d[name]) for n, d in enumerate(described) for name in ("kernel", "launched") if d[name]]
    names = {"kernel": "kernel", "launched": "launched by"}
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
