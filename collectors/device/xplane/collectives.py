"""Collective operations of a capture: split ones joined, numbered, placed in a step and in their group."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from collectors.base import Rows
from collectors.device.hlo.assignment import Assignment
from collectors.device.hlo.shapes import Collective
from collectors.device.xplane.arrays import batch, column, over
from collectors.device.xplane.ranks import Ranks
from runs.schema import SCHEMAS

_BATCH = 1 << 16


class Site(NamedTuple):
    """An operation of a device that is a collective, or a half of one."""

    device: int | None
    module: str | None
    op: str
    role: str
    what: Collective
    assignment: Assignment | None = None  # on which devices its program runs


class StepSpans:
    """Steps by time: device lines know them best, host annotations stand in where there are none."""

    def __init__(self) -> None:
        self.spans: dict[int | None, list[tuple[int, int, int]]] = {}  # device (None: host) -> (start, end ps, step)
        self._tables: dict[int | None, np.ndarray] = {}

    def add(self, device: int | None, start: int, dur: int, step: int) -> None:
        self.spans.setdefault(device, []).append((start, start + dur, step))
        self._tables.clear()

    def of(self, device: int | None, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(step, is it known) of each time."""
        key = device if device in self.spans else None
        if key not in self._tables:
            self._tables[key] = np.array(sorted(self.spans.get(key, ())), np.int64).reshape(-1, 3)
        table = self._tables[key]
        if not len(table):
            return np.zeros(len(start), np.int64), np.zeros(len(start), bool)
        at = np.searchsorted(table[:, 0], start, "right") - 1
        known = (at >= 0) & (start < table[np.maximum(at, 0), 1])
        return table[np.maximum(at, 0), 2], known


_Key = tuple[int | None, str | None, str, str]  # device, module, op, role


class Collectives:
    """Gathers executions of collectives while lines are read; rows come at the end, when steps are known."""

    def __init__(self) -> None:
        self.sites: dict[int, Site] = {}  # by op_id
        self._parts: dict[_Key, list[np.ndarray]] = {}  # (start, end ps)
        self._whats: dict[_Key, Collective] = {}
        self._assignments: dict[_Key, Assignment | None] = {}

    def add(self, op_ids: np.ndarray, start: np.ndarray, dur: np.ndarray) -> None:
        """Enters executions of operations that are in `sites`.

        An event of no length is dropped: CPU traces write such a twin beside the real one.
        """
        order = np.argsort(op_ids, kind="stable")
        order = order[dur[order] > 0]
        if not len(order):
            return
        ids = op_ids[order]
        spans = np.stack([start[order], start[order] + dur[order]], axis=1)
        cuts = np.flatnonzero(np.diff(ids)) + 1
        for first, part in zip([0, *cuts.tolist()], np.split(spans, cuts), strict=True):
            site = self.sites[int(ids[first])]
            key = (site.device, site.module, site.op, site.role)
            self._parts.setdefault(key, []).append(part.copy())
            self._whats[key] = site.what
            self._assignments[key] = site.assignment

    def rows(self, ranks: Ranks, capture: int, host: str | None, base_ns: int, steps: StepSpans) -> Iterator[Rows]:
        """Rows in the order of device, module, op and start. What was gathered is given up meanwhile."""
        keys = sorted(self._parts, key=lambda k: (k[0] is None, k[0] or 0, k[1] or "", k[2]))
        batch_of: list[tuple[_Key, Collective, np.ndarray]] = []
        count = 0
        for key in keys:
            what = self._whats[key]
            device, module, op, role = key
            half = role != "async" and what.part
            if half == "done" or (half == "start" and (device, module, op, "async") in self._whats):
                continue  # the line of asynchronous operations shows it from start to end
            spans = self._spans(key)
            if half == "start" and (done := (device, module, op.replace("-start", "-done"), role)) in self._parts:
                spans = _join(spans, np.sort(self._spans(done)[:, 1]))
            batch_of.append((key, what, spans))
            count += len(spans)
            if count >= _BATCH:
                yield self._batch(batch_of, ranks, capture, host, base_ns, steps)
                batch_of, count = [], 0
        if batch_of:
            yield self._batch(batch_of, ranks, capture, host, base_ns, steps)

    def _spans(self, key: _Key) -> np.ndarray:
        spans = np.concatenate(self._parts.pop(key))
        return spans[np.argsort(spans[:, 0], kind="stable")]

    def _batch(self, part, ranks, capture, host, base_ns, steps) -> Rows:
        spans = np.concatenate([s for _, _, s in part])
        sizes = [len(s) for _, _, s in part]
        devices = [key[0] for key, _, _ in part]
        rank_of = [ranks.rank.get(d) if d is not None else None for d in devices]
        who = [ranks.of(what, key[0], self._assignments[key]) for key, what, _ in part]
        fixed = {
            "capture": [capture] * len(part),
            "host": [host] * len(part),
            "rank": rank_of,
            "device": devices,
            "group": [w.ranks for w in who],
            "places": [w.places for w in who],
            "kind": [what.kind for _, what, _ in part],
            "bytes": [what.bytes for _, what, _ in part],
            "dtype": [what.dtype for _, what, _ in part],
            "op": [key[2] for key, _, _ in part],
            "module": [key[1] for key, _, _ in part],
        }
        rows = np.repeat(np.arange(len(part), dtype=np.int32), sizes)
        schema = SCHEMAS["collectives"].arrow
        columns = {name: column(schema.field(name).type, values, rows) for name, values in fixed.items()}
        found = [steps.of(device, s[:, 0]) for device, (_, _, s) in zip(devices, part, strict=True)]
        columns["step"] = over(pa.int64(), *(np.concatenate(each) for each in zip(*found, strict=True)))
        columns["seq"] = over(pa.int64(), np.concatenate([np.arange(n) for n in sizes]))
        columns["start_ns"] = over(pa.int64(), base_ns + spans[:, 0] // 1000)
        columns["end_ns"] = over(pa.int64(), base_ns + spans[:, 1] // 1000)
        return Rows("collectives", batch("collectives", columns))


def _join(starts: np.ndarray, done_ends: np.ndarray) -> np.ndarray:
    """Spans from each start to the end of the first unused `-done` that ends after the start was issued."""
    spans = starts.copy()
    at = 0
    for row in spans:
        while at < len(done_ends) and done_ends[at] < row[1]:
            at += 1
        if at == len(done_ends):
            break
        row[1] = done_ends[at]
        at += 1
    return spans
