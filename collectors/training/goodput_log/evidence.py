"""Rows of `evidence` from what entries say, placed in the job's life by when they were written."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from collectors.base import Rows
from collectors.reading.textlog import Buffer, Tally
from collectors.training.goodput_log.keys import STEP
from collectors.training.goodput_log.log import Ordered
from collectors.training.goodput_log.spoken import Said

KEPT = 200  # of one cause in PERIOD_NS: a failing job may repeat a line without end
PERIOD_NS = 600_000_000_000


class Evidence:
    """What the entries of a file say, gathered: of one cause at most KEPT in each PERIOD_NS, the others counted."""

    def __init__(self, tally: Tally):
        self._tally = tally
        self._counts: Counter[tuple[str, int | None]] = Counter()
        self._kept: list[tuple[Said, int]] = []

    def add(self, found: list[Said], before: int) -> None:
        """`before`: how many entries came before the batch."""
        for one in found:
            period = one.cause, None if one.ts_ns is None else one.ts_ns // PERIOD_NS
            self._counts[period] += 1
            if self._counts[period] <= KEPT:
                self._kept.append((one, before + one.entry))
            else:
                reason = f"of each ten minutes the first {KEPT} are kept, these came after them"
                self._tally.add(f"entries that tell of {one.cause}", reason, one.offset)

    def __bool__(self) -> bool:
        return bool(self._kept)

    def rows(self, ordered: Ordered | None, name: str) -> Iterator[Rows]:
        """Rows of `evidence`; attempt and last step are those of the job's events written before."""
        out = Buffer(
            "evidence",
            "ts_ns",
            "attempt",
            "step",
            "host",
            "device",
            "cause",
            "severity",
            "text",
            "offset",
            "order",
            "source",
        )
        where = _Where(ordered) if ordered is not None and ordered.when.size else None  # a job may have no event kept
        for one, order in self._kept:
            attempt, step = where.at(one.ts_ns) if where and one.ts_ns is not None else (None, None)
            out.add(
                one.ts_ns,
                attempt,
                step,
                one.host,
                one.device,
                one.cause,
                one.severity,
                one.text,
                one.offset,
                order,
                name,
            )
            yield from out.full()
        yield from out.rest()


class _Where:
    """How far the job was at a time, by its log."""

    def __init__(self, ordered: Ordered):
        self._when, self._attempt = ordered.when, ordered.attempt
        steps = np.flatnonzero(ordered.code == STEP)
        self._step_when, self._step = ordered.when[steps], ordered.value[steps]

    def at(self, ts_ns: int) -> tuple[int, int | None]:
        before = int(np.searchsorted(self._when, ts_ns, "right")) - 1
        step = int(np.searchsorted(self._step_when, ts_ns, "right")) - 1
        return int(self._attempt[max(before, 0)]), int(self._step[step]) if step >= 0 else None
