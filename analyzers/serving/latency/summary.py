"""One load in numbers: recomputed from its single requests where they are there, else as its tool printed them.

    request rate        = completed requests / duration            (as `vllm bench serve` counts)
    output tokens/s     = tokens generated in completed requests / duration
    total tokens/s      = the same with their prompt tokens
    tpot                = (e2e - ttft) / (output tokens - 1), of each completed request with more than one output token
    itl                 = every gap between two successive pieces of output, all requests together
    duration            = what the tool printed, unless its requests span more; else first arrival to last token

Where a tool states its own duration, its rates rest on that: so recomputed ones equal what it printed. Where it counts
other requests than are kept (a sample of them), its own totals, rates and latencies stand, and the kept requests tell
only what it did not print.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from analyzers.serving.loads import duration_of, loads, printed, rate_of, stage_names
from analyzers.serving.served import Served, has_requests, sampled, served, summary
from errors import QuestionError
from runs.tables import Tables

METRICS = {
    "ttft_s": "ttft",
    "tpot_s": "tpot",
    "itl_s": "itl",
    "e2e_s": "e2e",
    "queue_s": "queue",
    "prefill_s": "prefill",
}  # name in an answer: metric of `stage_stats`
STATISTICS = ("mean", "p50", "p99")
MORE_STATISTICS = ("std", "min", "p90", "p95", "p99.9", "max")
ADVICE = (
    "Add the result of a load test (`vllm bench serve --save-result --save-detailed` and the like), or per-request "
    "records as the table `requests`."
)


@dataclass(frozen=True, kw_only=True)
class Load:
    """One load, or several taken together (`stage` None). Rates and times are None where unknown.

    `requests`: all that were sent; `failed`: those of them that did not complete, aborted ones included,
    and not those that the end of the load cut off.
    `goodput_per_s`: requests per second that kept the tool's own objectives, as it printed it.
    `input_tokens`, `output_tokens`: of the completed ones. `latency`: {name of METRICS: {statistic: seconds}}.
    `basis`: {name: derived (recomputed from single requests) or measured (printed by the tool)}, of the rates too.
    `to_send`: requests that were to be sent, where how many failed is not told and fewer were answered.
    `served`: its single requests, None where there are none. `span_s`: first arrival to last token. `kept`: how many
    requests of those that completed are kept, where these are not all that the tool counts; else None.
    """

    stage: str | None
    tool: str | None = None
    requests: int | None = None
    failed: int | None = None
    duration_s: float | None = None
    span_s: float | None = None
    request_rate_per_s: float | None = None
    output_tokens_per_s: float | None = None
    total_tokens_per_s: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    goodput_per_s: float | None = None
    requested_rate_per_s: float | None = None
    max_concurrency: int | None = None
    latency: dict[str, dict[str, float]] = field(default_factory=dict)
    basis: dict[str, str] = field(default_factory=dict)
    served: Served | None = field(default=None, repr=False)
    kept: int | None = None
    to_send: int | None = None

    def statistic(self, metric: str, which: str) -> float | None:
        return self.latency.get(metric, {}).get(which)

    def to_dict(self) -> dict:
        """The keys of the JSON contract; each latency has mean, p50 and p99 at least, None where unknown."""
        names = (
            "stage",
            "requests",
            "failed",
            "duration_s",
            "request_rate_per_s",
            "output_tokens_per_s",
            "total_tokens_per_s",
            "goodput_per_s",
            "input_tokens",
            "output_tokens",
            "max_concurrency",
        )
        said = {name: _finite(getattr(self, name)) for name in names}
        said["requested_rate_per_s"] = _finite(self.requested_rate_per_s)
        for metric in METRICS:
            known = self.latency.get(metric, {})
            said[metric] = {s: _finite(known.get(s)) for s in STATISTICS}
            said[metric] |= {s: _finite(known[s]) for s in MORE_STATISTICS if s in known}
        return said | {"basis": dict(self.basis)}


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not np.isfinite(value) else value


def all_loads(tables: Tables, times: bool = True) -> list[Load]:
    """Every load in the order of the inputs; without `times` latencies of single requests are not summed up.

    Raises QuestionError where the run tells of none.
    """
    single = served(tables) if has_requests(tables) else None
    rows = loads(tables).drop_duplicates("stage")
    summed = {None if pd.isna(r["stage"]) else str(r["stage"]): r for r in rows.to_dict("records")}
    stats = printed(tables)
    names: list[str | None] = list(stage_names(tables)) if single is not None else list(summed)
    if not names and single is None:
        if tables.rows("requests"):
            served(tables)  # a trace of traffic: it says so
        raise QuestionError("this run has no record of requests, and no result of a load test", advice=ADVICE)
    parts = _by_stage(single, names)
    if None in parts and len(names) == 1 and names[0] not in parts:
        parts[names[0]] = parts.pop(None)  # requests of a run that is one load need not name it
    if None in parts:
        names.append(None)
    found = [_load(name, parts.get(name), summed.get(name), stats, times) for name in names]
    return [load for load in found if load.requests or load.latency]


def _by_stage(single: Served | None, names: Sequence[str | None]) -> dict[str | None, Served]:
    """Single requests by load; None holds those of no named load."""
    if single is None:
        return {}
    stage = single.rows["stage"]
    told = {str(s) for s in stage.dropna().unique()}
    parts: dict[str | None, Served] = {n: single.for_stage(n) for n in names if n in told}
    loose = stage.isna().to_numpy()
    if loose.all():
        parts[None] = single
    elif loose.any():
        parts[None] = single.part(loose)
    return parts


def _load(stage: str | None, of: Served | None, row: dict | None, stats: pd.DataFrame, times: bool) -> Load:
    """One load: recomputed, with what only its tool knows from `row` and `stats`."""
    told = _printed(stage, row, stats)
    if of is None:
        return told
    if (kept := sampled(of, None if row is None else row.get("completed"))) is not None:
        return _of_sample(told, of, kept, times)
    begin, end = span(of)
    spans = None if end is None else end - begin
    duration = duration_of(told.duration_s, spans)
    own = _recomputed(of, duration, times)
    basis = {**told.basis, **dict.fromkeys(own["latency"], "derived")}
    basis |= {
        n: "derived" for n in ("request_rate_per_s", "output_tokens_per_s", "total_tokens_per_s") if own[n] is not None
    }
    if duration is not None:
        basis["duration_s"] = "measured" if duration == told.duration_s else "derived"
    latency = {**told.latency, **own.pop("latency")}
    keep = {n: v for n, v in own.items() if v is not None}
    return Load(
        **{
            **_fields(told),
            **keep,
            "duration_s": duration,
            "span_s": spans,
            "latency": latency,
            "basis": basis,
            "served": of,
        }
    )


def _of_sample(told: Load, of: Served, kept: int, times: bool) -> Load:
    """The tool's own numbers, with latencies that it did not print from the requests that are kept."""
    own = _recomputed(of, None, times)["latency"]
    basis = {**dict.fromkeys(own, "derived"), **told.basis}
    return Load(**{**_fields(told), "latency": {**own, **told.latency}, "basis": basis, "served": of, "kept": kept})


def _fields(load: Load) -> dict:
    return {name: getattr(load, name) for name in load.__dataclass_fields__}


def _recomputed(of: Served, duration: float | None, times: bool) -> dict:
    rows = of.rows
    done = rows[rows["completed"]]
    tokens = {n: _total(done[n]) for n in ("prompt_tokens", "output_tokens")}
    both = None if None in tokens.values() else sum(tokens.values())
    latency = {}
    if times:
        timed = of.timed
        values = {n: timed[n].to_numpy(dtype=float) for n in METRICS if n != "itl_s"} | {"itl_s": of.gaps[0]}
        latency = {name: found for name, v in values.items() if (found := summary(v)) is not None}
    return {
        "requests": len(rows),
        "failed": int(rows["failed"].sum()),
        "input_tokens": tokens["prompt_tokens"],
        "output_tokens": tokens["output_tokens"],
        "request_rate_per_s": _per(len(done), duration),
        "output_tokens_per_s": _per(tokens["output_tokens"], duration),
        "total_tokens_per_s": _per(both, duration),
        "latency": latency,
    }


def _total(column: pd.Series) -> int | None:
    """Sum of a column of counts; None where some are not known."""
    return None if column.isna().any() else int(column.sum())


def _per(amount: float | None, seconds: float | None) -> float | None:
    return None if amount is None or not seconds else amount / seconds


def span(of: Served) -> tuple[float, float] | tuple[None, None]:
    """(first arrival, last token) in s since `of.origin_ns`; Nones where no time of day is known.

    Times that are out of the statistics do not count.
    """
    rows = of.rows[of.rows["out_of"] == ""]
    if of.origin_ns is None or not rows["arrival_ns"].notna().any():
        return None, None
    arrival = since(rows["arrival_ns"], of.origin_ns)
    ends = np.concatenate([arrival + rows["e2e_s"].to_numpy(dtype=float), since(rows["last_token_ns"], of.origin_ns)])
    if np.isnan(ends).all():
        return None, None
    return float(np.nanmin(arrival)), float(np.nanmax(ends))


def since(column: pd.Series, origin_ns: int) -> np.ndarray:
    """Times of day as float s since `origin_ns`, NaN where unknown; exact to the ns within a hundred days."""
    return ((column - origin_ns).astype("Float64") / 1e9).to_numpy(dtype=float, na_value=np.nan)


def _printed(stage: str | None, row: dict | None, stats: pd.DataFrame) -> Load:
    """A load as its tool summed it up. Where nothing was answered its statistics mean nothing, and are left out."""
    row = {k: None if v is None or pd.isna(v) else v for k, v in (row or {}).items()}
    completed, failed = row.get("completed"), row.get("failed")
    dead = row.get("outcome") == "failed" or completed == 0
    latency: dict[str, dict[str, float]] = {}
    said = stats.loc[stage].dropna() if stage in stats.index else pd.Series(dtype=float)
    sent = said.get(("to_send", "total"))
    if not dead:
        for name, metric in METRICS.items():
            known = {str(s): float(v) for (m, s), v in said.items() if m == metric}
            latency |= {name: known} if known else {}
    duration = _number(row.get("duration_s"))
    both = (
        None
        if None in (row.get("input_tokens"), row.get("output_tokens"))
        else (row["input_tokens"] + row["output_tokens"])
    )
    rates = (
        {}
        if dead
        else {
            name: rate_of(amount, duration, _number(row.get(name)))
            for name, amount in (
                ("request_rate_per_s", completed),
                ("output_tokens_per_s", row.get("output_tokens")),
                ("total_tokens_per_s", both),
            )
        }
    )
    counts = {
        n: None if row.get(n) is None else int(row[n]) for n in ("input_tokens", "output_tokens", "max_concurrency")
    }
    return Load(
        stage=stage,
        tool=None if row.get("tool") is None else str(row["tool"]),
        duration_s=duration,
        requests=None if completed is None else int(completed + (failed or 0)),
        failed=None if failed is None else int(failed),
        goodput_per_s=None if dead else _number(row.get("goodput_per_s")),
        requested_rate_per_s=_number(row.get("requested_rate_per_s")),
        to_send=int(sent) if failed is None and isinstance(sent, float) else None,
        latency=latency,
        basis=dict.fromkeys([*latency, *(n for n, v in rates.items() if v is not None)], "measured"),
        **rates,
        **counts,
    )


def _number(value: object) -> float | None:
    return None if value is None else float(value)


def together(parts: Sequence[Load], tables: Tables, times: bool = True) -> Load:
    """Loads with single requests as one. Time between loads, in which nothing was sent or answered, does not count."""
    of = served(tables)
    duration = _union([(p.served.origin_ns, p.span_s, p.duration_s) for p in parts])
    own = _recomputed(of, duration, times)
    names = ("request_rate_per_s", "output_tokens_per_s", "total_tokens_per_s")
    basis = dict.fromkeys([*own["latency"], *(n for n in names if own[n] is not None)], "derived")
    return Load(stage=None, duration_s=duration, served=of, basis=basis | {"duration_s": "derived"}, **own)


def _union(parts: Sequence[tuple[int | None, float | None, float | None]]) -> float | None:
    """Length of the union of spans (start ns, span s, duration s); without times of day the sum of durations."""
    if any(d is None for _, _, d in parts):
        return None
    if any(start is None or spans is None for start, spans, _ in parts):
        return float(sum(d for _, _, d in parts))
    total, reached = 0.0, -np.inf
    first = min(start for start, _, _ in parts)
    for start, seconds in sorted(((s - first) / 1e9, max(spans, d)) for s, spans, d in parts):
        end = start + seconds
        total += max(end - max(start, reached), 0.0)
        reached = max(reached, end)
    return total
