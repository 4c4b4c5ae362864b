"""Collective operations of a capture: split ones joined, numbered, placed in a step and in their group."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from collectors.arrays import batch, column, over
from collectors.base import Rows
from collectors.hlo_shapes import Collective
from runs.schema import SCHEMAS

_BATCH = 1 << 16


class Site(NamedTuple):
    """An operation of a device that is a collective, or a half of one."""

    device: int | None
    module: str | None
    op: str
    role: str
    what: Collective


class StepSpans:
    """Steps by time: device lines know them best, host annotations stand in where there are none."""

    def __init__(self) -> None:
        self.spans: dict[int | None, list[tuple[int, int, int]]] = {}  # device (None: host) -> (start, end ps, step)

    def add(self, device: int | None, start: int, dur: int, step: int) -> None:
        self.spans.setdefault(device, []).append((start, start + dur, step))

    def of(self, device: int | None, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(step, is it known) of each time."""
        spans = sorted(self.spans.get(device) or self.spans.get(None) or ())
        if not spans:
            return np.zeros(len(start), np.int64), np.zeros(len(start), bool)
        table = np.array(spans, np.int64)
        at = np.searchsorted(table[:, 0], start, "right") - 1
        known = (at >= 0) & (start < table[np.maximum(at, 0), 1])
        return table[np.maximum(at, 0), 2], known


class Collectives:
    """Gathers executions of collectives while lines are read; rows come at the end, when steps are known."""

    def __init__(self) -> None:
        self.sites: dict[int, Site] = {}  # by op_id
        self._parts: list[np.ndarray] = []  # (op_id, start ps, duration ps)

    def add(self, op_ids: np.ndarray, start: np.ndarray, dur: np.ndarray) -> None:
        self._parts.append(np.stack([op_ids, start, dur], axis=1))

    def rows(
        self, ranks: dict[int, int], capture: int, host: str | None, base_ns: int, steps: StepSpans
    ) -> Iterator[Rows]:
        """Rows in the order of device, module, op and start.

        An event of no length is dropped: CPU traces write such a twin beside the real one.
        """
        if not self._parts:
            return
        table = np.concatenate(self._parts)
        self._parts.clear()
        table = table[table[:, 2] > 0]
        groups: dict[tuple, list[np.ndarray]] = {}
        order = np.lexsort((table[:, 1], table[:, 0]))
        table = table[order]
        cuts = np.flatnonzero(np.diff(table[:, 0])) + 1
        for part in np.split(table, cuts):
            if len(part):
                site = self.sites[int(part[0, 0])]
                groups.setdefault((site.device, site.module, site.op, site.role), []).append(part)
        whole: list[tuple[Site, np.ndarray]] = []
        for key, parts in groups.items():
            site = self.sites[int(parts[0][0, 0])]
            spans = np.concatenate([p[:, 1:] for p in parts])
            spans = spans[np.argsort(spans[:, 0], kind="stable")]
            spans[:, 1] += spans[:, 0]  # start, end
            if site.what.part == "done":
                continue
            if site.what.part == "start" and site.role != "async":
                if (*key[:3], "async") in groups:
                    continue  # the line of asynchronous operations shows it from start to end
                done = groups.get((*key[:2], site.op.replace("-start", "-done"), site.role))
                if done is not None:
                    spans = _join(spans, np.sort(np.concatenate([p[:, 1] + p[:, 2] for p in done])))
            whole.append((site, spans))
        whole.sort(key=lambda w: (w[0].device is None, w[0].device or 0, w[0].module or "", w[0].op))
        yield from self._batches(whole, ranks, capture, host, base_ns, steps)

    def _batches(self, whole, ranks, capture, host, base_ns, steps) -> Iterator[Rows]:
        for at in _chunks([len(spans) for _, spans in whole]):
            part = whole[at]
            spans = np.concatenate([s for _, s in part])
            sizes = [len(s) for _, s in part]
            rank_of = [ranks.get(site.device) if site.device is not None else None for site, _ in part]
            fixed = {
                "host": [host] * len(part), "rank": rank_of, "device": [site.device for site, _ in part],
                "group": [group_of(site.what.groups, r) for (site, _), r in zip(part, rank_of, strict=True)],
                "kind": [site.what.kind for site, _ in part], "bytes": [site.what.bytes for site, _ in part],
                "dtype": [site.what.dtype for site, _ in part], "op": [site.op for site, _ in part],
                "module": [site.module for site, _ in part], "capture": [capture] * len(part),
            }  # fmt: skip
            rows = np.repeat(np.arange(len(part), dtype=np.int32), sizes)
            schema = SCHEMAS["collectives"].arrow
            columns = {name: column(schema.field(name).type, values, rows) for name, values in fixed.items()}
            found = [steps.of(site.device, s[:, 0]) for site, s in part]
            columns["step"] = over(
                pa.int64(), np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found])
            )
            columns["seq"] = over(pa.int64(), np.concatenate([np.arange(n) for n in sizes]))
            columns["start_ns"] = over(pa.int64(), base_ns + spans[:, 0] // 1000)
            columns["end_ns"] = over(pa.int64(), base_ns + spans[:, 1] // 1000)
            yield Rows("collectives", batch("collectives", columns))


def _chunks(sizes: list[int]) -> Iterator[slice]:
    """Runs of sites with about _BATCH rows each."""
    first = rows = 0
    for i, size in enumerate(sizes):
        rows += size
        if rows >= _BATCH or i == len(sizes) - 1:
            yield slice(first, i + 1)
            first, rows = i + 1, 0


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


def group_of(groups, rank: int | None) -> str | None:
    """The ranks of a device's own group, comma-separated; with one group only, that one."""
    if not groups:
        return None
    own = groups[0] if len(groups) == 1 else next((g for g in groups if rank is not None and rank in g), None)
    return ",".join(map(str, own)) if own else None
