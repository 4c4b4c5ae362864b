"""Collective operations that kernels of NCCL and RCCL carry out: what each is, between whom, and in which step."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from collectors.base import Rows
from collectors.device.kineto.device import COLLECTIVE_LABEL, Devices
from collectors.device.kineto.gather import GROUP_SIZE, PG_NAME, PG_RANKS, SEQ, Gathered
from collectors.device.kineto.kernels import collective_kind
from collectors.device.kineto.messages import size_of, told_of, word
from collectors.device.kineto.span import Span
from collectors.device.kineto.tokens import NONE
from collectors.device.kineto.who import Who, number
from collectors.device.xplane.arrays import batch, column, over
from runs.schema import SCHEMAS

_BATCH = 1 << 16


def collective_rows(
    gathered: Gathered, devices: Devices, step: np.ndarray, who: Who, span: Span, capture: int
) -> Iterator[Rows]:
    """Rows of `collectives` in order of device, name and start. `step`: of each event, -1 where it is not known."""
    label = devices.ops[devices.op, COLLECTIVE_LABEL] if len(devices.op) else devices.op
    chosen = np.flatnonzero(label >= 0)
    if not len(chosen):
        return
    events = devices.events[chosen]
    device = devices.number[events["row"]]
    order = np.lexsort((events["start"], label[chosen], device))
    chosen, events, device = chosen[order], events[order], device[order]
    keys = np.stack([events["name"], events["collective"], devices.site[chosen], devices.note[chosen]], axis=1)
    unique, inverse = np.unique(keys, axis=0, return_inverse=True)
    facts = [_facts(gathered, kernel, own, s, n, who) for kernel, own, s, n in unique.tolist()]
    inverse = inverse.reshape(-1)
    sequence = np.array([f["seq"] for f in facts], np.int64)[inverse]
    seq = _numbered(device, label[chosen], sequence)
    alone = {int(d): who.rank for d in np.unique(device)}
    ranks = devices.rank or (alone if len(alone) == 1 else {})
    for at in range(0, len(chosen), _BATCH):
        part = slice(at, at + _BATCH)
        yield _batch(
            facts,
            inverse[part],
            events[part],
            device[part],
            label[chosen[part]],
            seq[part],
            step[chosen[part]],
            ranks,
            gathered,
            who,
            span,
            capture,
        )


def _facts(gathered: Gathered, kernel: int, own: int, site: int, note: int, who: Who) -> dict:
    told = told_of(gathered, own, site, note)
    size, dtype = size_of(gathered, told, note)
    kind = collective_kind(word(gathered, kernel, told, note)) or collective_kind(gathered.texts[kernel])
    ranks = name = ""
    count, sequence = None, -1
    if told is not None:
        ranks, name = (gathered.texts[int(max(told[c], -1))] for c in (PG_RANKS, PG_NAME))
        count = number(int(told[GROUP_SIZE])) if told[GROUP_SIZE] != NONE else None
        sequence = int(told[SEQ]) if 0 <= told[SEQ] < 1 << 62 else -1
    group = who.group(ranks, name, count)
    return {"kind": kind, "bytes": size, "dtype": dtype, "group": group, "seq": sequence}


def _numbered(device: np.ndarray, label: np.ndarray, told: np.ndarray) -> np.ndarray:
    """Number of each collective among those of its name: as the trace counts them where it counts all of them, each
    once; else how many came before on its device."""
    new = np.concatenate(([True], (device[1:] != device[:-1]) | (label[1:] != label[:-1])))
    begins = np.flatnonzero(new)
    which = np.cumsum(new) - 1
    counted = np.arange(len(device)) - begins[which]
    rising = np.concatenate(([True], told[1:] > told[:-1])) | new
    whole = np.logical_and.reduceat((told >= 0) & rising, begins)
    return np.where(whole[which], told, counted)


def _batch(facts, which, events, device, label, seq, step, ranks, gathered, who, span, capture) -> Rows:
    schema = SCHEMAS["collectives"].arrow
    numbers, names = np.unique(label), {}
    for code in numbers.tolist():
        names[code] = gathered.texts[code]
    columns: dict = {
        name: column(schema.field(name).type, [f[name] for f in facts], which)
        for name in ("kind", "bytes", "dtype", "group")
    }
    n = len(events)
    columns |= {
        "capture": [capture] * n,
        "host": [who.host] * n,
        "rank": [ranks.get(int(d)) for d in device],
        "device": device.tolist(),
        "op": [names[code] for code in label.tolist()],
        "seq": over(pa.int64(), np.ascontiguousarray(seq)),
        "step": over(pa.int64(), np.ascontiguousarray(step), step >= 0),
        "start_ns": over(pa.int64(), events["start"] + span.shift_ns),
        "end_ns": over(pa.int64(), events["start"] + events["dur"] + span.shift_ns),
    }
    return Rows("collectives", batch("collectives", columns))
