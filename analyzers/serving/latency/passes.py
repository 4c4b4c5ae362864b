"""What the engine did while a request waited for its next token: from its passes (table `iterations`).

A gap or an answer is an interval of time. Of it, so much lay in passes, so much in passes that also read prompts, and
so much was added by reading prompts: what such passes took beyond a usual pass that only generates.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.serving.recorded import recorded
from analyzers.serving.work import Passes, passes
from runs.tables import Tables, frame


@dataclass(frozen=True)
class Share:
    """Seconds of each interval asked for; NaN where no pass is recorded for it.

    `inside`: in passes; `prefill`: in passes that also read prompts; `added`: what reading prompts added to passes;
    `preempting`: number of requests put back in passes that touch the interval.
    """

    inside: np.ndarray
    prefill: np.ndarray
    added: np.ndarray
    preempting: np.ndarray


@dataclass(frozen=True)
class Calendar:
    """Passes of one replica in seconds since an origin: `x` bounds, cumulative seconds at them by kind."""

    x: np.ndarray
    inside: np.ndarray
    prefill: np.ndarray
    added: np.ndarray
    preempted_at: np.ndarray  # ends of passes that put requests back, with how many so far
    preempted: np.ndarray

    def share(self, begin: np.ndarray, end: np.ndarray) -> Share:
        def between(y: np.ndarray) -> np.ndarray:
            return np.interp(end, self.x, y) - np.interp(begin, self.x, y)

        known = (begin >= self.x[0] - 1e-3) & (end <= self.x[-1] + 1e-3)
        so_far = np.concatenate([[0.0], np.cumsum(self.preempted)])
        back = so_far[np.searchsorted(self.preempted_at, end, "right")]
        back = back - so_far[np.searchsorted(self.preempted_at, begin, "left")]
        parts = (between(self.inside), between(self.prefill), between(self.added), back)
        return Share(*(np.where(known, p, np.nan) for p in parts))


@dataclass(frozen=True)
class Engine:
    """The calendars of a run's replicas. `usual_pass_s`: median pass that only generates; None where there is none.
    `several`: whether requests name more than one replica, so that the passes of one tell nothing of another's."""

    calendars: dict[str, Calendar]
    usual_pass_s: float | None
    several: bool = False

    def share(self, replica: pd.Series, begin: np.ndarray, end: np.ndarray) -> Share | None:
        """What happened in [begin, end] on each request's replica; None where passes are not recorded, or several
        replicas have some and requests do not say which served them."""
        if len(self.calendars) == 1 and not self.several:
            return next(iter(self.calendars.values())).share(begin, end)
        if not self.calendars or replica.isna().all():
            return None
        parts = np.full((4, len(begin)), np.nan)
        names = replica.astype(object).to_numpy()
        for name, calendar in self.calendars.items():
            mine = names == name
            got = calendar.share(begin[mine], end[mine])
            parts[:, mine] = (got.inside, got.prefill, got.added, got.preempting)
        return Share(*parts)


def engine(tables: Tables, origin_ns: int | None) -> Engine:
    """The recorded passes, in seconds since `origin_ns`."""
    found = passes(tables) if origin_ns is not None else []
    alone = [_seconds(p)[(p.tokens["prefill_tokens"] == 0) & (p.tokens["decode_requests"] > 0)] for p in found]
    together = np.concatenate(alone) if alone else np.zeros(0)
    usual = float(np.median(together)) if len(together) else None
    back = _preempted(tables) if found else {}
    several = bool(found) and frame(tables, "requests", ["replica"])["replica"].nunique() > 1
    return Engine({p.replica: _calendar(p, origin_ns, usual, back.get(p.replica)) for p in found}, usual, several)


def _seconds(p: Passes) -> np.ndarray:
    return (p.end - p.start) / 1e9


def _calendar(p: Passes, origin_ns: int, usual: float | None, back: pd.DataFrame | None) -> Calendar:
    start = (p.start - origin_ns) / 1e9
    end = (p.end - origin_ns) / 1e9
    end[:-1] = np.minimum(end[:-1], start[1:])  # passes in flight at once: the next one's begin ends it
    length = np.maximum(end - start, 0.0)
    reads = p.tokens["prefill_tokens"] > 0
    over = np.full(len(length), np.nan) if usual is None else np.maximum(length - usual, 0.0)
    kinds = (length, np.where(reads, length, 0.0), np.where(reads, over, 0.0))
    x = np.column_stack([start, start + length]).ravel()
    sums = (np.column_stack([np.cumsum(k) - k, np.cumsum(k)]).ravel() for k in kinds)
    at = np.zeros(0) if back is None else (back["end_ns"].to_numpy(dtype=np.int64) - origin_ns) / 1e9
    put = np.zeros(0) if back is None else back["preempted"].to_numpy(dtype=float)
    return Calendar(x, *sums, at, put)


def _preempted(tables: Tables) -> dict[str, pd.DataFrame]:
    """Passes in which requests were put back, by server as `passes` names it, in order of time."""
    rows, _ = recorded(tables, ["preempted"])
    rows = rows[rows["start_ns"].notna() & (rows["dur_ns"] > 0).fillna(False)]
    rows = rows.assign(end_ns=rows["start_ns"] + rows["dur_ns"])
    rows = rows[(rows["preempted"] > 0).fillna(False)]
    return {str(n): g.sort_values("end_ns") for n, g in rows.groupby("replica", sort=False)}
