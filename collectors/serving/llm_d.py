"""llm-d's benchmark reports, v0.1 and v0.2, YAML or JSON: one load of any load tool in one normalised shape.

v0.2 keeps its numbers in `results.request_performance.aggregate`, v0.1 in `metrics`; every statistic says its unit.
What the engines said of their KV cache and their queue comes along where it is of one engine, or summed over all.
A report made from a stage of another tool (`benchmark_report_v0.2,_stage_0_lifecycle_metrics.json.yaml`) has the name
of that stage, since both tell of the same load.
"""

import re
from collections.abc import Iterator
from math import isfinite
from typing import Any

from collectors.base import Fact, Item, Source
from collectors.reading.documents import distribution, document, merged, part, text
from collectors.reading.textlog import DATED, Tally, clean, moment_ns, seconds_to_ns, tail
from collectors.serving.inference_perf import stage_name
from collectors.serving.serving_rows import Loads, count, number, rate
from errors import InputError

NAME = "llm-d"
TITLE = "llm-d benchmark report"
HELP = "llm-d benchmark report v0.1 or v0.2 (YAML, JSON): one load with its rates, latencies, engines and chips."

_EXPECTED = 'an llm-d benchmark report with "version", "scenario" and "results" (v0.2) or "metrics" (v0.1)'
_KEY = rb"""(?:^|[{,\n])[ \t]*["']?%s["']?[ \t]*:"""  # no newline in a run: a page of them would take forever
_PREFIX = re.compile(r"benchmark_report(?:_v[\d.]+)?,_")
_PARTIAL = re.compile(r"inference-perf\.partial\.stage_(\d+)")
_DURATION = re.compile(r"P(?:(?P<d>[\d.]+)D)?(?:T(?:(?P<h>[\d.]+)H)?(?:(?P<m>[\d.]+)M)?(?:(?P<s>[\d.]+)S)?)?")
_LATENCIES = {
    "time_to_first_token": "ttft",
    "time_per_output_token": "tpot",
    "inter_token_latency": "itl",
    "request_latency": "e2e",
    "normalized_time_per_output_token": "normalized_tpot",
}
_SCALES = {
    "s": 1.0,
    "seconds": 1.0,
    "s/token": 1.0,
    "ms": 1e-3,
    "ms/token": 1e-3,
    "us": 1e-6,
    "us/token": 1e-6,
    "count": 1.0,
    "tokens": 1.0,
    "percent": 1e-2,
    "fraction": 1.0,
    "queries/s": 1.0,
    "tokens/s": 1.0,
}
_NAMES = {"p0p1": "p0.1", "p99p9": "p99.9"}


def sniff(source: Source) -> float:
    if b"\0" in source.head:
        return 0.0
    both = source.head + b"\n" + tail(source)  # keys are sorted: the version stands at the end
    found = all(re.search(_KEY % key, both) for key in (b"version", b"scenario"))
    shape = re.search(_KEY % b"request_performance", both) or (
        re.search(_KEY % b"metrics", both) and re.search(_KEY % b"time_to_first_token", both)
    )
    return 0.9 if found and shape else 0.0


def read(source: Source) -> Iterator[Item]:
    """One load with its statistics, and facts. Raises InputError for what is no such report."""
    tally = Tally()
    report = document(source, _EXPECTED)
    version = str(part(report, "version") or "")
    newer = part(report, "results", "request_performance", "aggregate")
    older = part(report, "metrics")
    if not version.startswith("0.") or not isinstance(part(report, "scenario"), dict | None):
        raise InputError("no llm-d benchmark report", where=source.name, expected=_EXPECTED)
    found = newer if isinstance(newer, dict) else older
    if not isinstance(found, dict):
        raise InputError("a report without measurements of requests", where=source.name, expected=_EXPECTED)
    loads = Loads(source, NAME)
    columns = _newer(report, found, tally) if found is newer else _older(report, found, tally)
    stats = merged([_statistics(found, tally), _engines(part(report, "results", "observability"), tally)])
    loads.add(columns, stats, name=_stage(source, report))
    yield from loads.rows()
    yield from _facts(report, tally)
    yield from tally.lost()


def _stage(source: Source, report: Any) -> str:
    number_ = count(part(report, "scenario", "load", "standardized", "stage"))
    if number_ is None:
        number_ = count(part(report, "scenario", "load", "metadata", "stage"))
    if partial := _PARTIAL.search(source.name):
        return stage_name(source.name, int(partial[1]))
    if _PREFIX.search(source.name):
        return stage_name(_PREFIX.sub("", source.name), number_)
    base = stage_name(source.name)
    return base if number_ is None or f"stage {number_}" in base else clean(f"{base} stage {number_}")


def _statistics(found: dict, tally: Tally) -> dict[tuple[str, str], float]:
    latency, requests, rates = part(found, "latency"), part(found, "requests"), part(found, "throughput")
    return merged(
        [
            *(_measure(ours, part(latency, theirs), tally) for theirs, ours in _LATENCIES.items()),
            _measure("prompt_tokens", part(requests, "input_length"), tally),
            _measure("output_tokens", part(requests, "output_length"), tally),
            _measure("request_rate_per_s", part(rates, "request_rate"), tally),
        ]
    )


def _measure(metric: str, found: Any, tally: Tally) -> dict[tuple[str, str], float]:
    """A distribution in the metric's unit; nothing, by name, where its unit is not known."""
    unit = part(found, "units")
    if not isinstance(found, dict):
        return {}
    if not isinstance(unit, str) or unit not in _SCALES:
        tally.add(f"statistics of {metric}", f"in an unknown unit, {str(unit)[:40]!r}")
        return {}
    return distribution(metric, found, tally, scale=_SCALES[unit], names=_NAMES)


def _engines(seen: Any, tally: Tally) -> dict[tuple[str, str], float]:
    """KV cache and queue as the engines said: over all of them where summed up, else where there is one."""
    parts = part(seen, "components")
    engines = [c for c in parts if part(c, "aggregate", "kv_cache_usage")] if isinstance(parts, list) else []
    one = engines[0] if len(engines) == 1 else None
    return merged(
        [
            _measure("kv_usage", _over_all(part(seen, "vllm_kv_cache_usage_perc")), tally),
            _measure("queue_length", _over_all(part(seen, "vllm_num_requests_waiting")), tally),
            _measure("kv_usage", part(one, "aggregate", "kv_cache_usage"), tally),
            _measure("queue_length", part(one, "aggregate", "waiting_requests"), tally),
        ]
    )


def _over_all(gauge: Any) -> Any:
    parts = part(gauge, "components")
    single = part(parts, 0, "statistics") if isinstance(parts, list) and len(parts) == 1 else None
    return part(gauge, "aggregated") or single


def _counts(requests: Any, tally: Tally) -> dict[str, int | None]:
    total, failed = count(part(requests, "total")), count(part(requests, "failures"))
    unfinished = count(part(requests, "incomplete")) or 0
    if unfinished:
        tally.add("requests", "cut off when the load ended: neither answered nor failed", count=unfinished)
    answered = None if total is None or failed is None else max(0, total - failed - unfinished)
    return {"completed": answered, "failed": failed}


def _newer(report: Any, found: dict, tally: Tally) -> dict[str, Any]:
    load, rates = part(report, "scenario", "load", "standardized"), part(found, "throughput")
    most = number(part(load, "concurrency"))
    return {
        "start_ns": _moment(part(report, "run", "time", "start")),
        "duration_s": _seconds(part(report, "run", "time", "duration")),
        "requested_rate_per_s": rate(part(load, "rate_qps")),
        "max_concurrency": count(most) if most is not None and isfinite(most) else None,
        **_counts(part(found, "requests"), tally),
        "request_rate_per_s": number(part(rates, "request_rate", "mean")),
        "output_tokens_per_s": number(part(rates, "output_token_rate", "mean")),
        "total_tokens_per_s": number(part(rates, "total_token_rate", "mean")),
    }


def _older(report: Any, found: dict, tally: Tally) -> dict[str, Any]:
    rates = part(found, "throughput")
    return {
        "start_ns": seconds_to_ns(part(found, "time", "start")),
        "duration_s": _seconds(part(found, "time", "duration")),
        **_counts(part(found, "requests"), tally),
        "request_rate_per_s": number(part(rates, "requests_per_sec")),
        "output_tokens_per_s": number(part(rates, "output_tokens_per_sec")),
        "total_tokens_per_s": number(part(rates, "total_tokens_per_sec")),
    }


def _moment(said: Any) -> int | None:
    match = DATED.search(said) if isinstance(said, str) else None
    return moment_ns(match) if match else None


def _seconds(said: Any) -> float | None:
    """A number of seconds above 0, or an ISO 8601 duration (PT49.97S)."""
    if isinstance(said, str) and (match := _DURATION.fullmatch(said.strip())):
        units = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
        parts = {key: number(value) for key, value in match.groupdict().items() if value is not None}
        said = sum(value * units[key] for key, value in parts.items() if value is not None) if parts else None
    found = number(said)
    return found if found is not None and found > 0 else None


def _facts(report: Any, tally: Tally) -> Iterator[Fact]:
    stack = part(report, "scenario", "stack")
    engines = [part(c, "standardized") for c in stack] if isinstance(stack, list) else []
    engines = [e for e in engines if part(e, "kind") == "inference_engine"]
    models = [text(part(e, "model", "name")) for e in engines] + [text(part(report, "scenario", "model", "name"))]
    hosts = part(report, "scenario", "host", "accelerator")
    held = [part(e, "accelerator") for e in engines] + (hosts if isinstance(hosts, list) else [])
    chips = [text(part(a, "model")) for a in held]
    for name, told in (("model", models), ("chip", chips)):
        values = {v for v in told if v is not None}
        if len(values) == 1:
            yield Fact(name, values.pop())
        elif values:
            tally.add(name, f"several in one report: {', '.join(sorted(values))[:200]}")
    total = _chips(engines, held, tally)
    if total:
        yield Fact("chips", total)
    yield from _layout(report, engines, tally)
    load = part(report, "scenario", "load")
    tool = text(part(load, "standardized", "tool")) or text(part(load, "name"))
    if tool:
        yield Fact("load_tool", tool)


def _layout(report: Any, engines: list, tally: Tally) -> Iterator[Fact]:
    """How many engines of each role there are, and over how many chips each splits its tensors.

    v0.1 lists them in `scenario.host`: `type` (replica, prefill or decode) and `accelerator` side by side.
    """
    if engines:
        told = [
            (text(part(e, "role")), count(part(e, "replicas")) or 1, count(part(e, "accelerator", "parallelism", "tp")))
            for e in engines
        ]
    else:
        roles, held = part(report, "scenario", "host", "type"), part(report, "scenario", "host", "accelerator")
        roles, held = (value if isinstance(value, list) else [] for value in (roles, held))
        told = [(text(part(roles, n)), 1, count(part(each, "parallelism", "tp"))) for n, each in enumerate(held)]
    for role in ("prefill", "decode"):
        if workers := sum(many for kind, many, _ in told if kind == role):
            yield Fact(f"{role}_workers", workers)
        tensors = {tensor for kind, _, tensor in told if kind == role} - {None}
        if len(tensors) == 1:
            yield Fact(f"{role}_tensor_parallel_size", next(iter(tensors)))
    making = [tensor for kind, _, tensor in told if kind != "prefill"]  # a token's cache lies where it is generated
    tensors = set(making or [tensor for _, _, tensor in told])
    if len(tensors) == 1 and (tensor := tensors.pop()):
        yield Fact("tensor_parallel_size", tensor)
    elif several := sorted(t for t in tensors if t is not None):
        tally.add("tensor parallelism", f"not the same in all engines: {several}")


def _chips(engines: list, held: list, tally: Tally) -> int | None:
    """Chips of all engines. None, by name, where that contradicts their replicas and parallelism."""
    counts = [count(part(a, "count")) for a in held]
    if not counts or None in counts:
        return None
    for engine in engines:
        split = part(engine, "accelerator", "parallelism")
        each = (count(part(split, "tp")) or 1) * (count(part(split, "pp")) or 1)
        if (count(part(engine, "replicas")) or 1) * each > (count(part(engine, "accelerator", "count")) or 0):
            tally.add("chips", "fewer than the replicas of an engine need at its parallelism: not known how many")
            return None
    return sum(n for n in counts if n is not None)
