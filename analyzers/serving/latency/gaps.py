"""The time between pieces of output, over time: how it is spread, which gaps were stalls, and what caused those.

A stall is a gap of more than twice the median and more than six robust standard deviations (1.4826 MAD) above it. Its
cause is what lay in it, on the engine's own record of its passes:

    preempted   its request was put back into the queue so often that it is one of its longest gaps, and a pass that
                touches it put requests back
    prefill     passes that also read prompts fill at least half of it (chunked prefill beside generating)
    slow pass   passes that only generate fill at least half of it
    between     less than half of it lay in passes: scheduling, sampling, sending
    unknown     no pass is recorded for it
"""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from analyzers.serving.latency.anatomy import cumulative
from analyzers.serving.latency.passes import Engine, Share
from analyzers.serving.latency.summary import since
from analyzers.serving.served import Served

CAUSES = ("preempted", "prefill", "slow pass", "between", "unknown")
TIMES, SIZES = 120, 48  # cells of the heat map
LONGEST = 1000
PIECE = 1 << 18
SAMPLE = 400_000  # gaps that shares are counted from
FACTOR, DEVIATIONS = 2.0, 6.0


@dataclass(frozen=True)
class Heat:
    """Gaps by time and length: `counts` is (times x lengths); edges in s since the first arrival, and in s (log)."""

    time_edges_s: np.ndarray
    gap_edges_s: np.ndarray
    counts: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Gaps:
    """`count` gaps with a median of `usual_s`; longer than `threshold_s` is a stall. `distribution`: value, share.

    `causes`: one row a cause that occurs: cause, stalls, lost_s (beyond a usual gap), share_of_time (of all gaps).
    `longest`: the 1,000 longest stalls: id, at_s (of their end, since the first arrival; NaN where unknown), gap_s,
    cause. `prefill_share`, `p99_prefill_share`: the share of gaps that prefill caused, of all and of those from
    the p99 on; `p99_without_prefill_s`: the p99 of the other gaps. None where passes are not recorded.
    """

    count: int
    usual_s: float
    threshold_s: float
    p99_s: float
    stalls: int
    causes: pd.DataFrame
    longest: pd.DataFrame
    prefill_share: float | None
    p99_prefill_share: float | None
    p99_without_prefill_s: float | None
    heat: Heat | None
    distribution: pd.DataFrame = field(repr=False)

    def to_dict(self) -> dict:
        return {
            "gaps": self.count,
            "usual_s": self.usual_s,
            "threshold_s": self.threshold_s,
            "stalls": self.stalls,
            "causes": {
                r["cause"]: {"stalls": int(r["stalls"]), "lost_s": float(r["lost_s"])}
                for r in self.causes.to_dict("records")
            },
            "prefill_share": self.prefill_share,
            "p99_prefill_share": self.p99_prefill_share,
            "p99_without_prefill_s": self.p99_without_prefill_s,
        }


def gaps(of: Served, of_engine: Engine) -> Gaps | None:
    """The gaps of a load; None where none are recorded."""
    seconds, owner = of.gaps
    if not len(seconds):
        return None
    usual, p99 = (float(x) for x in np.percentile(seconds, [50, 99]))
    deviation = 1.4826 * float(np.median(np.abs(seconds - usual)))
    threshold = max(FACTOR * usual, usual + DEVIATIONS * deviation)
    ends = _ends(of, seconds, owner)
    far = np.flatnonzero(seconds > threshold)
    cause = _causes(of, of_engine, seconds[far], owner[far], ends[far])
    share, tail, without = _explained(of, of_engine, seconds, owner, ends, p99)
    return Gaps(
        count=len(seconds),
        usual_s=usual,
        threshold_s=threshold,
        p99_s=p99,
        stalls=len(far),
        causes=_by_cause(seconds[far], cause, usual, float(seconds.sum())),
        longest=_longest(of, seconds[far], owner[far], ends[far], cause),
        prefill_share=share,
        p99_prefill_share=tail,
        p99_without_prefill_s=without,
        heat=_heat(seconds, ends),
        distribution=cumulative(seconds),
    )


def _ends(of: Served, seconds: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """When each gap ended, s since the first arrival; NaN where no time of day is known."""
    if of.origin_ns is None:
        return np.full(len(seconds), np.nan)
    first = since(of.rows["arrival_ns"], of.origin_ns) + of.rows["ttft_s"].to_numpy(dtype=float)
    sums = np.cumsum(seconds)
    begins = np.flatnonzero(np.diff(owner, prepend=-1))
    before = sums[begins] - seconds[begins]
    return first[owner] + sums - np.repeat(before, np.diff(begins, append=len(owner)))


def _causes(of: Served, of_engine: Engine, gap: np.ndarray, owner: np.ndarray, end: np.ndarray) -> np.ndarray:
    rows = of.rows.iloc[owner]
    preempted = rows["preemptions"].to_numpy(dtype=float, na_value=0.0)
    replica = rows["replica"].reset_index(drop=True)
    lay = of_engine.share(replica, end - gap, end)
    if lay is None:
        lay = Share(*(np.full(len(gap), np.nan) for _ in range(4)))
    known = ~np.isnan(lay.inside)
    choices = (
        (known & (_rank(gap, owner) < preempted) & (lay.preempting > 0), "preempted"),
        (~known, "unknown"),
        (lay.inside < 0.5 * gap, "between"),
        (lay.prefill >= 0.5 * gap, "prefill"),
    )
    return np.select([c for c, _ in choices], [name for _, name in choices], "slow pass").astype(object)


def _rank(gap: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """Of each gap, how many of the same request are longer."""
    order = np.lexsort((-gap, owner))
    begins = np.flatnonzero(np.diff(owner[order], prepend=-1))
    rank = np.empty(len(gap), dtype=np.int64)
    rank[order] = np.arange(len(gap)) - np.repeat(begins, np.diff(begins, append=len(gap)))
    return rank


def _explained(
    of: Served, of_engine: Engine, seconds: np.ndarray, owner: np.ndarray, ends: np.ndarray, p99: float
) -> tuple[float | None, float | None, float | None]:
    """Shares caused by prefill, (of all gaps, of those from the p99 on), and the p99 of the gaps that it did not cause.
    From at most 400,000 gaps, taken evenly. Nones where no passes are recorded."""
    every = np.unique(np.linspace(0, len(seconds) - 1, SAMPLE).astype(np.int64))
    cause = _causes(of, of_engine, seconds[every], owner[every], ends[every])
    every, cause = every[cause != "unknown"], cause[cause != "unknown"]
    if not len(every):
        return None, None, None
    gap, prefill = seconds[every], cause == "prefill"
    tail = gap >= p99
    without = float(np.percentile(gap[~prefill], 99)) if (~prefill).any() else None
    return float(prefill.mean()), float(prefill[tail].mean()) if tail.any() else None, without


def _by_cause(gap: np.ndarray, cause: np.ndarray, usual: float, every: float) -> pd.DataFrame:
    table = pd.DataFrame({"cause": cause, "lost_s": gap - usual, "gap_s": gap})
    grouped = table.groupby("cause").agg(stalls=("lost_s", "size"), lost_s=("lost_s", "sum"), all_s=("gap_s", "sum"))
    grouped["share_of_time"] = grouped["all_s"] / every if every else np.nan
    order = [c for c in CAUSES if c in grouped.index]
    return grouped.loc[order, ["stalls", "lost_s", "share_of_time"]].reset_index()


def _longest(of: Served, gap: np.ndarray, owner: np.ndarray, end: np.ndarray, cause: np.ndarray) -> pd.DataFrame:
    top = np.argsort(-gap, kind="stable")[:LONGEST]
    rows = of.rows.iloc[owner[top]]
    return pd.DataFrame(
        {
            "id": rows["id"].to_numpy(),
            "at_s": end[top],
            "gap_s": gap[top],
            "cause": cause[top],
            "output_tokens": rows["output_tokens"].to_numpy(),
        }
    )


def _heat(seconds: np.ndarray, ends: np.ndarray) -> Heat | None:
    """Counts by time and by length; gaps of no time lie in the lowest row. Counted piece by piece, in little memory."""
    high = float(seconds.max())
    if high <= 0 or np.isnan(ends).all():
        return None
    some = seconds[:: max(len(seconds) // SAMPLE, 1)]
    low = float(np.quantile(some[some > 0], 0.0005)) if (some > 0).any() else high / 2
    gap_edges = np.geomspace(min(low, high / 2), high, SIZES + 1)
    begin, end = float(np.nanmin(ends)), float(np.nanmax(ends))
    time_edges = np.linspace(min(begin, 0.0), max(end, begin + 1e-9), TIMES + 1)
    counts = np.zeros(TIMES * SIZES, dtype=np.int64)
    for piece in range(0, len(seconds), PIECE):
        when, gap = ends[piece : piece + PIECE], seconds[piece : piece + PIECE]
        when, gap = when[~np.isnan(when)], gap[~np.isnan(when)]
        x = (when - time_edges[0]) * (TIMES / (time_edges[-1] - time_edges[0]))
        y = np.log(np.maximum(gap, gap_edges[0]) / gap_edges[0]) * (SIZES / np.log(high / gap_edges[0]))
        x, y = (np.clip(v.astype(np.int64), 0, most - 1) for v, most in ((x, TIMES), (y, SIZES)))
        counts += np.bincount(x * SIZES + y, minlength=TIMES * SIZES)
    return Heat(time_edges, gap_edges, counts.reshape(TIMES, SIZES))
