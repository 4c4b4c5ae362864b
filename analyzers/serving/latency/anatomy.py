"""Where a latency comes from: queue and prefill by percentile, latency over time, tenants, and what failed."""

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from analyzers.serving.latency.summary import since
from analyzers.serving.served import Served

GROUPS = 100  # groups of requests in order of their TTFT
WINDOWS, PER_WINDOW = 80, 25  # at most so many stretches of time, with so many requests each on average
TENANTS = 200
_NUMBERS = re.compile(r"0x[0-9a-fA-F]+|\d+")


def split(timed: pd.DataFrame) -> pd.DataFrame:
    """Requests in order of TTFT, in at most 100 groups as equal as can be: columns share (of requests up to the end of
    the group, 0 to 1), requests, ttft_s, queue_s, prefill_s (means; the two sum to the first where they are known).

    Requests without a TTFT are left out. queue_s and prefill_s are NaN in a group in which some do not tell them.
    """
    values = timed[["ttft_s", "queue_s", "prefill_s"]].to_numpy(dtype=float)
    values = values[~np.isnan(values[:, 0])]
    values = values[np.argsort(values[:, 0], kind="stable")]
    n = len(values)
    edges = np.linspace(0, n, min(GROUPS, n) + 1).astype(np.int64)
    counts = np.diff(edges)
    sums = np.add.reduceat(values, edges[:-1], axis=0) if n else np.zeros((0, 3))
    means = sums / counts[:, None]
    return pd.DataFrame(
        {
            "share": edges[1:] / max(n, 1),
            "requests": counts,
            "ttft_s": means[:, 0],
            "queue_s": means[:, 1],
            "prefill_s": means[:, 2],
        }
    )


def windows(of: Served) -> pd.DataFrame:
    """Latencies by time of arrival: one row a stretch of time in which requests arrived, columns start_s, end_s (since
    the first arrival), requests, and {ttft_s, tpot_s, e2e_s, queue_s}_{p50, p99}. Empty where no arrival is known."""
    names = ("ttft_s", "tpot_s", "e2e_s", "queue_s")
    timed = of.timed
    if of.origin_ns is None or not len(timed):
        return pd.DataFrame()
    at = since(timed["arrival_ns"], of.origin_ns)
    known = ~np.isnan(at)
    if not known.any():
        return pd.DataFrame()
    count = int(np.clip(known.sum() // PER_WINDOW, 1, WINDOWS))
    edges = np.linspace(0.0, max(float(np.nanmax(at)), 1e-9), count + 1)
    which = np.clip(np.searchsorted(edges, at[known], "right") - 1, 0, count - 1)
    grouped = timed.loc[known, list(names)].astype(float).groupby(which)
    table = pd.DataFrame({"requests": grouped.size()})
    for q, word in ((0.5, "p50"), (0.99, "p99")):
        table = table.join(grouped.quantile(q).add_suffix(f"_{word}"))
    table.insert(0, "start_s", edges[table.index])
    table.insert(1, "end_s", edges[table.index + 1])
    return table.reset_index(drop=True)


def tenants(of: Served) -> pd.DataFrame:
    """One row a tenant, the one with most requests first: tenant, requests, failed, prompt_tokens, output_tokens, and
    mean, p50 and p99 of ttft_s, tpot_s, e2e_s, mean of queue_s. Empty where fewer than two are known."""
    rows = of.rows
    if rows["tenant"].nunique() < 2:
        return pd.DataFrame()
    names = ["ttft_s", "tpot_s", "e2e_s", "queue_s"]
    key = rows["tenant"].astype(str).where(rows["tenant"].notna(), "not told")
    grouped = rows.groupby(key, observed=True)
    table = pd.DataFrame(
        {
            "requests": grouped.size(),
            "failed": rows["failed"].groupby(key).sum(),
            **{n: grouped[n].sum(min_count=1) for n in ("prompt_tokens", "output_tokens")},  # none told is not none
        }
    )
    times = rows[names].astype(float).groupby(key)
    mean, middle, high = times.mean(), times.quantile(0.5), times.quantile(0.99)
    for name in names[:3]:
        stem = name.removesuffix("_s")
        table[f"{stem}_mean_s"], table[f"{stem}_p50_s"], table[f"{stem}_p99_s"] = mean[name], middle[name], high[name]
    table["queue_mean_s"] = mean["queue_s"]
    table = table.sort_values("requests", ascending=False, kind="stable").head(TENANTS)
    return table.rename_axis("tenant").reset_index()


def failures(rows: pd.DataFrame) -> pd.DataFrame:
    """Requests that failed, by status and error, most first: status, error (numbers in it as `#`), requests,
    tokens (of prompts and, as far as told, generated), example (the id of one)."""
    lost = rows[rows["failed"]]
    text = lost["error"].astype(object).where(lost["error"].notna(), "no error was recorded")
    kinds = {t: _kind(t) for t in text.unique()}
    tokens = lost["prompt_tokens"].fillna(0) + lost["output_tokens"].fillna(0)
    table = pd.DataFrame(
        {
            "status": lost["status"].astype(str),
            "error": text.map(kinds).astype(str),
            "tokens": tokens.astype("Int64"),
            "example": lost["id"].astype(object),
        }
    )
    grouped = table.groupby(["status", "error"], sort=False)
    table = grouped.agg(requests=("tokens", "size"), tokens=("tokens", "sum"), example=("example", "first"))
    table = table.reset_index().sort_values("requests", ascending=False, kind="stable", ignore_index=True)
    return table[["status", "error", "requests", "tokens", "example"]]


def _kind(text: str) -> str:
    """The last line of an error (of a traceback the one that says what it was), numbers as `#`: alike counts as one."""
    lines = [line.strip() for line in str(text).splitlines() if line.strip()]
    return _NUMBERS.sub("#", lines[-1])[:200] if lines else "empty"


def tokens_lost(rows: pd.DataFrame) -> tuple[int, float | None]:
    """(prompt and generated tokens of requests that failed, their share of all such tokens).

    Unknown counts are 0, and the prompt of a request that failed early may never have been read: at most so many.
    """
    tokens = (rows["prompt_tokens"].fillna(0) + rows["output_tokens"].fillna(0)).to_numpy(dtype=float)
    lost, every = float(tokens[rows["failed"].to_numpy()].sum()), float(tokens.sum())
    return int(lost), lost / every if every else None


def cumulative(values: Sequence[float], points: int = 400) -> pd.DataFrame:
    """The distribution of known values, reduced: columns value, share (of values up to it). The last percent, where the
    p99 lies, keeps a quarter of the points."""
    known = np.sort(np.asarray(values, dtype=float))
    known = known[~np.isnan(known)]
    n = len(known)
    if n > points:
        most = np.linspace(0, 0.99, points * 3 // 4, endpoint=False)
        at = np.unique(np.round(np.concatenate([most, np.linspace(0.99, 1, points // 4)]) * (n - 1)).astype(np.int64))
    else:
        at = np.arange(n)
    return pd.DataFrame({"value": known[at], "share": (at + 1) / max(n, 1)})
