"""A or B: by how much two served runs differ, and whether the difference is more than chance.

Paired where both answered the same requests (equal ids and equal prompts): then each request is its own control, and
blocks of the same requests are drawn in both. Else blocks of each run are drawn independently
(`analyzers.serving.bootstrap`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analyzers.serving.ab_parts import RequestChange, request_change
from analyzers.serving.bootstrap import (
    FEWEST_BLOCKS,
    FEWEST_INDEPENDENT,
    SEED,
    STATISTICS,
    Blocks,
    blocks,
    draws,
    means,
    needed,
    quantiles,
    widened,
)
from analyzers.serving.latency.summary import since, span
from analyzers.serving.served import Served
from errors import QuestionError
from errors import format as fmt

METRICS = ("ttft_s", "tpot_s", "e2e_s")
RATE = "output_tokens_per_s"
COMMON = 0.9  # share of the requests of the smaller run that both must hold to be paired
DIFFERENT = 0.05  # relative difference of lengths or rates from which the traffic is not the same
WINDOWS = 60
MORE_AT_MOST = 1000.0  # times as many requests: beyond it the question is closed


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One statistic of both. `difference` = B - A, `ratio` = B / A, each with a 95 % interval; None where it cannot be
    told, and `why` says so. `clear`: the interval does not hold 0. `times_more`: so many times the requests would be
    needed to tell a difference of this size from chance, None where it is clear or hopeless.

    `slower_share`: of one request of each drawn at random, how often B's took longer (ties half); None of rates.
    `better`: "A", "B" or "" (not clear). Latencies are better when lower, throughput when higher. `independent`: values
    that count as independent in the smaller run."""

    metric: str
    statistic: str
    a: float
    b: float
    difference: float
    low: float | None
    high: float | None
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    clear: bool
    better: str
    times_more: float | None
    independent: float
    slower_share: float | None = None
    why: str = ""


@dataclass(frozen=True)
class Traffic:
    """What was asked of both, and `warnings`: in which way that differs, so that not the engines alone are compared."""

    rows: pd.DataFrame
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class AbResult:
    """`differences`: one for each metric and statistic that both tell. `paired`: requests that both answered, compared
    one by one; 0 where they are not the same requests. `request`: of the time of one, on which a verdict rests."""

    differences: tuple[Difference, ...]
    traffic: Traffic
    paired: int
    requests: tuple[int, int]
    notes: tuple[str, ...]
    request: RequestChange

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.request.to_dict(),
            "paired": self.paired,
            "requests": list(self.requests),
            "differences": [dict(vars(d)) for d in self.differences],
            "traffic": [
                {k: None if pd.isna(v) else v for k, v in r.items()} for r in self.traffic.rows.to_dict("records")
            ],
            "warnings": list(self.traffic.warnings),
            "notes": list(self.notes),
        }


def compare(a: Served, b: Served) -> AbResult:
    """B against A. Raises QuestionError where one of them answered no request."""
    for name, of in (("the first", a), ("the second", b)):
        if not len(of.timed):
            raise QuestionError(
                f"{name} of the two runs has no answered request with a latency",
                advice="Compare two runs with single requests, or other loads of them.",
            )
    traffic = _traffic(a, b)
    pairs = _pairs(a, b)
    rng = np.random.default_rng(SEED)
    found: list[Difference] = []
    for metric in METRICS:
        x, y = _values(a, b, metric, pairs)
        if len(x) and len(y):
            found += _differences(metric, x, y, pairs is not None, rng)
    rates = [_windows(of) for of in (a, b)]
    if all(len(r) >= FEWEST_BLOCKS for r in rates):
        found += _differences(RATE, *rates, True, rng, ("mean",))
    if not found:
        raise QuestionError("the two runs tell no latency in common", advice="Compare runs that tell TTFT or E2E.")
    paired = 0 if pairs is None else len(pairs)
    return AbResult(
        tuple(found),
        traffic,
        paired,
        (len(a.rows), len(b.rows)),
        tuple(_notes(paired, found)),
        request_change(a, b, pairs),
    )


def _pairs(a: Served, b: Served) -> pd.DataFrame | None:
    """Rows of A and B that are the same request, in A's order of arrival: columns at_a, at_b. None where they are not
    the same: ids that repeat or are missing, too few in common, or other prompts behind them."""
    sides = []
    for of in (a, b):
        ids = of.rows["id"]
        if ids.isna().any() or ids.duplicated().any():
            return None
        rows = pd.DataFrame({"id": ids.astype(str), "at": np.arange(len(ids)), "prompt": of.rows["prompt_tokens"]})
        sides.append(rows[(of.rows["completed"] & (of.rows["out_of"] == "")).to_numpy()])
    both = sides[0].merge(sides[1], on="id", suffixes=("_a", "_b"))
    if len(both) < COMMON * min(len(s) for s in sides) or not len(both):
        return None
    prompt = both[["prompt_a", "prompt_b"]].astype(float).dropna().to_numpy()
    same = len(prompt) and (prompt[:, 0] == prompt[:, 1]).mean() >= COMMON
    if not same and not _alike(prompt):
        return None
    return both.sort_values("at_a", kind="stable")[["at_a", "at_b"]].reset_index(drop=True)


def _alike(prompt: np.ndarray) -> bool:
    """Whether lengths are those of the same prompts in another tokeniser: they go up and down together."""
    if len(prompt) < 10 or (np.ptp(prompt, axis=0) == 0).any():
        return False
    return float(np.corrcoef(np.log1p(prompt.T))[0, 1]) > 0.95


def _values(a: Served, b: Served, metric: str, pairs: pd.DataFrame | None) -> tuple[np.ndarray, np.ndarray]:
    """The latencies to compare, in order of arrival; of pairs those that both tell."""
    if pairs is None:
        both = (of.timed[metric].to_numpy(dtype=float) for of in (a, b))
        x, y = (v[~np.isnan(v)] for v in both)
        return x, y
    x = a.rows[metric].to_numpy(dtype=float)[pairs["at_a"]]
    y = b.rows[metric].to_numpy(dtype=float)[pairs["at_b"]]
    known = ~np.isnan(x) & ~np.isnan(y)
    return x[known], y[known]


def _windows(of: Served) -> np.ndarray:
    """Tokens generated per second in equal stretches of the run, tokens of a request spread evenly over its answer."""
    rows = of.rows[(of.rows["completed"] & (of.rows["out_of"] == "")).to_numpy() & of.rows["output_tokens"].notna()]
    begin, end = span(of)
    if begin is None or end is None or not end > begin or not len(rows):
        return np.zeros(0)
    last = since(rows["arrival_ns"], of.origin_ns) + rows["e2e_s"].to_numpy(dtype=float)
    decode = np.maximum(np.nan_to_num(rows["decode_s"].to_numpy(dtype=float)), 1e-9)
    tokens = rows["output_tokens"].to_numpy(dtype=float)
    edges = np.linspace(begin, end, WINDOWS + 1)
    so_far = [np.nansum(tokens * np.clip((t - last) / decode + 1, 0, 1)) for t in edges]
    return np.diff(so_far) / np.diff(edges)


def _differences(
    metric: str, x: np.ndarray, y: np.ndarray, paired: bool, rng: np.random.Generator, which: Sequence[str] = ()
) -> list[Difference]:
    """Every statistic of one metric, all from the same resamples."""
    if paired:
        cut = blocks(y - x)
        of = (cut, Blocks(cut.number, cut.count, cut.remembers))
        weights = (draws(cut.count, rng),) * 2
    else:
        of = (blocks(x), blocks(y))
        weights = tuple(draws(o.count, rng) for o in of)
    slower = None if metric == RATE else _slower(x, y)
    found = []
    for name in which or STATISTICS:
        q = STATISTICS[name]
        told = [float(v.mean()) if q is None else float(np.quantile(v, q)) for v in (x, y)]
        independent = min(len(v) / o.remembers for v, o in zip((x, y), of, strict=True))
        why = _cannot(q, of, independent)
        samples = (
            None
            if why
            else [
                means(v, o, w) if q is None else quantiles(v, o, w, q)
                for v, o, w in zip((x, y), of, weights, strict=True)
            ]
        )
        found.append(_difference(metric, name, told, samples, of, independent, why, slower))
    return found


def _slower(x: np.ndarray, y: np.ndarray) -> float:
    """The chance that a value of `y` drawn at random is above one of `x`, ties half (Mann-Whitney's U / (n m))."""
    order, y = np.sort(x), np.sort(y)  # sorted values are looked up near each other
    below = np.searchsorted(order, y, "left") + np.searchsorted(order, y, "right")
    return float(below.mean() / (2 * len(x)))


def _cannot(q: float | None, of: Sequence[Blocks], independent: float) -> str:
    """Why there can be no interval; empty where there can."""
    if independent < FEWEST_INDEPENDENT or min(o.count for o in of) < FEWEST_BLOCKS:
        return (
            f"its requests hang together so much (a queue that grows or drains) that only about {int(independent)} "
            "of them count as independent"
        )
    if q is not None and independent < needed(q):
        return f"it needs at least {needed(q):,} independent requests, and there are about {int(independent)}"
    return ""


def _difference(
    metric: str,
    name: str,
    told: Sequence[float],
    samples: Sequence[np.ndarray] | None,
    of: Sequence[Blocks],
    independent: float,
    why: str,
    slower: float | None,
) -> Difference:
    a, b = told
    ratio = b / a if a else None
    shared = {
        "metric": metric,
        "statistic": name,
        "a": a,
        "b": b,
        "difference": b - a,
        "ratio": ratio,
        "independent": float(independent),
        "why": why,
        "slower_share": slower,
    }
    if samples is None:
        none = dict.fromkeys(("low", "high", "ratio_low", "ratio_high", "times_more"))
        return Difference(**shared, **none, clear=False, better="")
    low, high = widened(samples[1] - samples[0], b - a, of)
    positive = ratio is not None and (samples[0] > 0).all()
    ratios = widened(samples[1] / samples[0], ratio, of) if positive else (None, None)
    clear = bool(low > 0 or high < 0)
    higher_is_better = metric == RATE
    better = ("B" if (b > a) == higher_is_better else "A") if clear else ""
    times = None
    if not clear and b != a:
        times = (max(high - (b - a), (b - a) - low) / abs(b - a)) ** 2  # half widths shrink with the root of n
        times = times if times <= MORE_AT_MOST else None
    return Difference(
        **shared,
        low=low,
        high=high,
        ratio_low=ratios[0],
        ratio_high=ratios[1],
        clear=clear,
        better=better,
        times_more=times,
    )


def _traffic(a: Served, b: Served) -> Traffic:
    """Requests, lengths and rates of both."""
    rows = pd.DataFrame(
        [
            {"quantity": name, "a": one, "b": two, "unit": unit}
            for (name, unit, one), (_, _, two) in zip(_asked(a), _asked(b), strict=True)
        ]
    )
    warnings = []
    for r in rows[rows["quantity"] != "requests"].to_dict("records"):
        if pd.isna(r["a"]) or pd.isna(r["b"]):
            continue
        larger, apart = max(abs(r["a"]), abs(r["b"])), abs(r["b"] - r["a"])
        limit = 0.01 if r["unit"] == "share" else DIFFERENT * larger
        if apart > limit:
            warnings.append(
                f"The traffic differs: {r['quantity']} {fmt.at_most(r['a'], 4)} in A, {fmt.at_most(r['b'], 4)} in B."
            )
    return Traffic(rows, tuple(warnings))


def _asked(of: Served) -> list[tuple[str, str, float]]:
    rows = of.rows
    mean = {n: rows.loc[rows["completed"], n].astype(float).mean() for n in ("prompt_tokens", "output_tokens")}
    at = np.full(1, np.nan) if of.origin_ns is None else since(rows["arrival_ns"], of.origin_ns)
    seconds = np.nanmax(at) - np.nanmin(at) if not np.isnan(at).all() else np.nan
    return [
        ("requests", "", float(len(rows))),
        ("prompt tokens of a request (mean)", "tokens", float(mean["prompt_tokens"])),
        ("output tokens of a request (mean)", "tokens", float(mean["output_tokens"])),
        ("requests sent per second", "1/s", (len(rows) - 1) / seconds if seconds > 0 else float("nan")),
        ("share of requests that failed", "share", float(rows["failed"].mean())),
    ]


def _notes(paired: int, found: Sequence[Difference]) -> list[str]:
    how = (
        f"Paired: the same {paired:,} requests were answered by both, and each is compared with itself."
        if paired
        else "Not paired: the two did not answer the same requests (equal ids and prompts)."
    )
    notes = [
        how,
        "Intervals hold the true difference in 95 of 100 such comparisons: 2,000 resamples of blocks of consecutive "
        "requests, for requests that share a queue and a batch are not independent; with a fixed seed.",
        f"{len(found)} intervals at once: about one in twenty misses by chance alone.",
        "A run is one day of one machine: what differs between days and machines no interval of two runs can hold.",
    ]
    if any(d.metric == RATE for d in found):
        notes.append(
            f"Throughput is compared stretch by stretch: each run is cut into {WINDOWS} equal ones, so that "
            "the ramp-up of one is compared with that of the other."
        )
    return notes
