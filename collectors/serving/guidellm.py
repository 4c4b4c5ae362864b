"""GuideLLM's reports, JSON or YAML: a load each for the rates or numbers of streams of a sweep, with single requests.

Its statistics come by how requests ended; those of answered requests are kept. "Time per output token" includes the
first token since version 0.3 (ours: `normalized_tpot`), and is left out of older reports, where it is neither.
"Inter-token latency" is a request's (last token - first token) / (output tokens - 1), weighted by its tokens: its mean
is that of all gaps (`itl`), its percentiles are smoother. Of requests that the end of a load cut off,
the last token's time is when that was.

Its statistics and totals are of the measured window, without warm-up and cool-down, while all requests are kept, or a
sample of them: those that ended before the window or began after it are left out here too, by name.
"""

import re
from collections.abc import Iterator
from typing import Any

from collectors.base import Fact, Item, Source
from collectors.reading.documents import begins, distribution, document, merged, part, text
from collectors.reading.textlog import Tally, clean, seconds_to_ns
from collectors.serving.serving_rows import Loads, Requests, count, duration_ns, number, rate
from errors import InputError

NAME = "guidellm"
TITLE = "GuideLLM report"
HELP = "GuideLLM benchmark reports (JSON, YAML): a load for each rate of a sweep, with its requests where kept."

_EXPECTED = 'a GuideLLM report: "benchmarks", each with "metrics" by how requests ended'
_MILLI = {
    "time_to_first_token_ms": "ttft",
    "time_per_output_token_ms": "normalized_tpot",
    "inter_token_latency_ms": "itl",
}
_PLAIN = {
    "request_latency": "e2e",
    "request_concurrency": "concurrency",
    "requests_concurrency": "concurrency",
    "prompt_token_count": "prompt_tokens",
    "prompt_tokens": "prompt_tokens",
    "output_token_count": "output_tokens",
    "outputs_tokens": "output_tokens",
}
_NAMES = {
    "p001": "p0.1",
    "p01": "p1",
    "p05": "p5",
    "p10": "p10",
    "p25": "p25",
    "p50": "p50",
    "p75": "p75",
    "p90": "p90",
    "p95": "p95",
    "p99": "p99",
    "p999": "p99.9",
    "std_dev": "std",
}
_ENDS = {"successful": "completed", "errored": "failed", "incomplete": "cut_off"}
_TEXTS = ("prompt", "output", "request_args", "reasoning_output", "tool_calls", "response_args", "pdf")


def sniff(source: Source) -> float:
    head = source.head
    if b"\0" in head:
        return 0.0
    key = rb'"benchmarks"\s*:' if begins(source) else rb"(?m)^benchmarks\s*:"
    if re.search(key, head) and (
        b"generative_benchmark" in head or b"guidellm" in head or b"time_to_first_token_ms" in head
    ):
        return 0.9
    return 0.85 if b'"guidellm_version"' in head else 0.0


def read(source: Source) -> Iterator[Item]:
    """Loads with statistics and requests. Raises InputError for what is no such report."""
    tally, loads, requests = Tally(), Loads(source, NAME), Requests(source)
    report = document(source, _EXPECTED, hook=_lighter)
    benchmarks = part(report, "benchmarks")
    if not isinstance(benchmarks, list):
        raise InputError("no GuideLLM report", where=source.name, expected=_EXPECTED)
    for benchmark in benchmarks:
        if not isinstance(part(benchmark, "metrics"), dict):
            tally.add("benchmarks", "without metrics")
            continue
        stage, window = _load(loads, benchmark, tally), _window(benchmark)
        for ending, status in _ENDS.items():
            entries = part(benchmark, "requests", ending)
            for entry in entries if isinstance(entries, list) else []:
                row = _request(entry, status)
                if row is None:
                    tally.add("requests", "without a start")
                elif _outside(entry, row["arrival_ns"], window):
                    tally.add("requests", "of the warm-up or the cool-down: not part of the measured load")
                else:
                    requests.add(stage=stage, **row)
            yield from requests.full()
    if not len(loads):
        raise InputError("no benchmark in it", where=source.name, expected=_EXPECTED)
    yield from loads.rows()
    yield from requests.rest()
    models = {text(part(config, *path)) for config in (report, *benchmarks) for path in _MODELS} - {None}
    if len(models) == 1:
        yield Fact("model", models.pop())
    yield from tally.lost()


_MODELS = (
    ("config", "spec", "backend", "model"),
    ("config", "backend", "model"),
    ("args", "model"),
    ("worker", "backend_model"),
    ("benchmarker", "backend", "model"),
)


def _lighter(found: dict) -> dict:
    """Any object without the text of prompts and answers."""
    for key in _TEXTS:
        if key in found and isinstance(found[key], str | list):
            del found[key]
    return found


def _load(loads: Loads, benchmark: Any, tally: Tally) -> str:
    metrics = benchmark["metrics"]
    strategy = part(benchmark, "config", "strategy") or part(benchmark, "args", "strategy")
    totals = part(metrics, "request_totals") or part(benchmark, "request_totals")
    answered = count(part(totals, "successful"))
    if answered is None:
        answered = count(part(metrics, "request_latency", "successful", "count"))
    if unfinished := count(part(totals, "incomplete")):
        tally.add("requests", "cut off when the load ended: neither answered nor failed", count=unfinished)
    kind = text(part(strategy, "type_"), 40) or "load"
    asked, streams = number(part(strategy, "rate")), count(part(strategy, "streams"))
    at_once = kind == "throughput"
    start, end = number(part(benchmark, "start_time")), number(part(benchmark, "end_time"))
    duration = number(part(benchmark, "duration"))
    if duration is None and start is not None and end is not None:
        duration = end - start
    columns = {
        "start_ns": seconds_to_ns(start),
        "duration_s": duration if duration is not None and duration > 0 else None,
        "requested_rate_per_s": rate("inf") if at_once else rate(asked) if kind in _RATED else None,
        "max_concurrency": 1 if kind == "synchronous" else streams or count(part(strategy, "max_concurrency")),
        "completed": answered,
        "failed": count(part(totals, "errored")),
        "input_tokens": _sum(metrics, "prompt_token_count", "prompt_tokens"),
        "output_tokens": _sum(metrics, "output_token_count", "outputs_tokens"),
        "request_rate_per_s": _mean(metrics, "requests_per_second"),
        "output_tokens_per_s": _mean(metrics, "output_tokens_per_second"),
        "total_tokens_per_s": _mean(metrics, "tokens_per_second"),
    }
    value = "" if at_once else f" {asked:g}/s" if asked and kind in _RATED else f" {streams}" if streams else ""
    return loads.add(columns, _statistics(benchmark, tally), label=clean(kind + value))


_RATED = ("constant", "poisson", "async")


def _window(benchmark: Any) -> tuple[int | None, int | None]:
    """(start, end) of what the report's statistics are of, ns since the epoch; Nones in reports of before 0.3, which
    keep no request of warm-up and cool-down."""
    told = part(benchmark, "scheduler_metrics")
    if told is None:
        return None, None

    def moment(end: str) -> int | None:
        ns = seconds_to_ns(part(told, f"measure_{end}_time"))
        return seconds_to_ns(part(benchmark, f"{end}_time")) if ns is None else ns

    return moment("start"), moment("end")


def _outside(entry: Any, start_ns: int, window: tuple[int | None, int | None]) -> bool:
    """Whether a request ended before the measured window or began after it, which is GuideLLM's own rule."""
    timings = part(entry, "info", "timings") or part(entry, "scheduler_info", "request_timings")
    end_ns = _moment(entry, timings, "request_end_time", "end_time", "request_end", "resolve_end")
    first, last = window
    early = first is not None and end_ns is not None and end_ns < first
    return early or (last is not None and start_ns > last)


def _statistics(benchmark: Any, tally: Tally) -> dict[tuple[str, str], float]:
    metrics, newer = benchmark["metrics"], "scheduler_metrics" in benchmark or "scheduler_state" in benchmark
    return merged(
        [
            *(
                _summed(ours, part(metrics, theirs, "successful"), tally, 1e-3)
                for theirs, ours in _MILLI.items()
                if newer or ours != "normalized_tpot"
            ),
            *(_summed(ours, part(metrics, theirs, "successful"), tally, 1.0) for theirs, ours in _PLAIN.items()),
        ]
    )


def _summed(metric: str, found: Any, tally: Tally, scale: float) -> dict[tuple[str, str], float]:
    """Nothing where it counts no observation: its zeros stand for nothing."""
    if not isinstance(found, dict) or number(found.get("count")) == 0:
        return {}
    flat = {key: value for key, value in found.items() if key not in ("count", "mode", "total_sum", "variance")}
    percentiles = flat.pop("percentiles", None)
    return merged(
        [
            distribution(metric, flat, tally, scale=scale, names=_NAMES),
            distribution(metric, percentiles, tally, scale=scale, names=_NAMES),
        ]
    )


def _mean(metrics: Any, name: str) -> float | None:
    return number(part(metrics, name, "successful", "mean"))


def _sum(metrics: Any, *names: str) -> int | None:
    return next((n for name in names if (n := count(part(metrics, name, "successful", "total_sum"))) is not None), None)


def _request(entry: Any, status: str) -> dict[str, Any] | None:
    timings = part(entry, "info", "timings") or part(entry, "scheduler_info", "request_timings")
    start = _moment(entry, timings, "request_start_time", "start_time", "request_start")
    if start is None:
        return None
    done, cut = status == "completed", status == "cut_off"
    end = _moment(
        entry,
        timings,
        "last_token_time",
        "last_token_iteration",
        "last_iteration",
        "request_end_time",
        "end_time",
        "request_end",
    )
    first = _moment(entry, timings, "first_token_time", "first_token_iteration", "first_iteration")
    ttft = number(part(entry, "time_to_first_token_ms"))
    error = part(entry, "error") or part(entry, "info", "error")
    return {
        "id": text(part(entry, "request_id")) or text(part(entry, "id_")),
        "arrival_ns": start,
        "first_token_ns": first if done or cut else None,
        "last_token_ns": end if done else _cut_off(entry, timings) if cut else None,
        "ttft_ns": duration_ns(ttft / 1e3) if done and first is None and ttft is not None else None,
        "prompt_tokens": _tokens(entry, "prompt_tokens", "input_metrics"),
        "cached_tokens": count(part(entry, "cached_tokens")),
        "output_tokens": _tokens(entry, "output_tokens", "output_metrics"),
        "status": status,
        "error": None if error is None else str(error),
    }


def _cut_off(entry: Any, timings: Any) -> int | None:
    """When the end of the load cut a request off."""
    return _moment(entry, timings, "request_end_time", "end_time", "request_end", "resolve_end")


def _moment(entry: Any, timings: Any, *names: str) -> int | None:
    found = (seconds_to_ns(part(where, name)) for name in names for where in (entry, timings))
    return next((ns for ns in found if ns is not None), None)


def _tokens(entry: Any, name: str, usage: str) -> int | None:
    told = (part(entry, name), part(entry, usage, "total_tokens"), part(entry, usage, "text_tokens"))
    return next((n for value in told if (n := count(value)) is not None), None)
