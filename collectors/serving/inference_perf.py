"""inference-perf's reports: a load test in stages of rising rate, one file a stage, JSON or YAML.

    stage_N_lifecycle_metrics       a load: counts, rates and latencies as its clients saw them
    stage_N_prometheus_metrics      what the server said of the same load: KV cache, waiting requests, phases. Of TTFT
                                    and the like the clients' account is kept: the server's are guesses from buckets
    per_request_lifecycle_metrics   single requests; their times are of a clock that starts anywhere
    summary_*, adapter_*            the same requests again, over all stages or by adapter: kept as a fact, as no load

TPOT is (last token - first token) / (output tokens - 1) of each request, ITL the time between tokens: where several
come in one piece their distance is near zero, so that half of the gaps may be. A load's duration runs from its first
request to its last answer; older versions state it as requests answered by requests per second.
"""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from collectors.base import Fact, Item, Source
from collectors.reading.documents import begins, distribution, document, merged, part, whole_ns
from collectors.reading.json_stream import objects
from collectors.reading.textlog import Tally, clean, seconds_to_ns
from collectors.serving.serving_rows import Loads, Requests, count, duration_ns, number, rate, rows_of
from errors import InputError

NAME = "inference-perf"
TITLE = "inference-perf report"
HELP = "inference-perf reports (JSON, YAML): lifecycle and Prometheus metrics of each stage, single requests."

_EXPECTED = 'an inference-perf report with "load_summary" and "successes"'
_FILE = re.compile(
    r"(?P<what>stage_(?P<n>\d+)|summary|adapter_.+?|per_request)_(?P<whose>lifecycle|prometheus)_metrics"
)
_REQUEST = re.compile(
    rb'\s*\[\s*\{\s*"start_time"\s*:\s*[-+.\deE]+\s*,\s*"end_time"\s*:\s*[-+.\deE]+\s*,\s*'
    rb'"(?:session_id|stage_id|request|response|info|computed_metrics|error)"'
)
_LATENCIES = {
    "time_to_first_token": "ttft",
    "time_per_output_token": "tpot",
    "inter_token_latency": "itl",
    "request_latency": "e2e",
    "normalized_time_per_output_token": "normalized_tpot",
}
_SERVER = {
    "request_queue_time": "queue",
    "request_prefill_time": "prefill",
    "request_decode_time": "decode",
    "queue_len": "queue_length",
}


def sniff(source: Source) -> float:
    head = source.head
    if b"\0" in head:
        return 0.0
    if all(re.search(rb"""(?:^|[{,\s])["']?%s["']?\s*:""" % key, head) for key in (b"load_summary", b"successes")):
        return 0.95
    return 0.85 if _REQUEST.match(head) else 0.0  # the next keys may lie behind a long prompt


def stage_name(name: str, number_: int | None = None) -> str:
    """A load's name from its file's: `vllm/results/stage_0_lifecycle_metrics.json` is `vllm stage 0`.

    So is `demo__vllm__results__stage_0_lifecycle_metrics.json`, as folders are written where files lie side by side.
    """
    folders, file = _parts(name)
    match = _FILE.search(file)
    if number_ is None and match and match["n"]:
        number_ = int(match["n"])
    last = f"stage {number_}" if number_ is not None else re.sub(r"\.(?:json|ya?ml|gz)", "", file)
    return clean(" ".join([*folders, last]).strip() or "load")


def _parts(name: str) -> tuple[list[str], str]:
    *folders, file = re.split(r"[/\\]", name)
    *flat, file = file.split("__")
    kept = [*folders, *[folder for folder in flat if folder != "results"][-1:]]
    return [folder for folder in kept if folder not in ("", ".", "results")], file


def read(source: Source) -> Iterator[Item]:
    """Stages with their statistics, requests, or a fact. Raises InputError for anything else."""
    tally = Tally()
    if begins(source) == "[":
        yield from _single(source, tally)
    else:
        yield from _report(source, tally)
    yield from tally.lost()


def _report(source: Source, tally: Tally) -> Iterator[Item]:
    report = document(source, _EXPECTED)
    load, successes = part(report, "load_summary"), part(report, "successes")
    if not isinstance(load, dict) or not isinstance(successes, dict):
        raise InputError("no inference-perf report", where=source.name, expected=_EXPECTED)
    match = _FILE.search(_parts(source.name)[1])
    if match and not match["n"]:
        if match["whose"] == "lifecycle":
            of = " ".join(_parts(source.name)[0])
            yield Fact(
                clean(f"load_test_{match['what']}" + (f" of {of}" if of else ""))[:200],
                {
                    "completed": count(successes.get("count")),
                    "failed": count(part(report, "failures", "count")),
                },
            )
    elif "latency" in successes or "throughput" in successes:
        loads = Loads(source, NAME)
        loads.add(_columns(report, load, successes), _client(load, successes, tally), name=stage_name(source.name))
        yield from loads.rows()
    else:
        stage = stage_name(source.name)
        stats = [
            {"stage": stage, "metric": metric, "statistic": which, "value": value}
            for (metric, which), value in _server(successes, tally).items()
        ]
        if stats:
            yield rows_of("stage_stats", stats)


def _columns(report: Any, load: dict, successes: dict) -> dict[str, Any]:
    answered, rates = count(successes.get("count")), part(successes, "throughput")
    per_s = number(part(rates, "requests_per_sec"))
    duration = number(part(report, "benchmark_time_seconds"))
    if duration is None and answered and per_s:
        duration = answered / per_s
    return {
        "duration_s": duration if duration and duration > 0 else None,
        "requested_rate_per_s": rate(load.get("requested_rate")),
        "max_concurrency": count(load.get("concurrency")),
        "completed": answered,
        "failed": count(part(report, "failures", "count")),
        "input_tokens": _tokens(successes, "prompt_tokens", "prompt_len", answered),
        "output_tokens": _tokens(successes, "output_tokens", "output_len", answered),
        "request_rate_per_s": per_s,
        "goodput_per_s": number(part(successes, "goodput_metrics", "request_goodput")),
        "output_tokens_per_s": number(part(rates, "output_tokens_per_sec")),
        "total_tokens_per_s": number(part(rates, "total_tokens_per_sec")),
    }


def _tokens(successes: dict, total: str, each: str, answered: int | None) -> int | None:
    """Tokens of all answered requests: as stated, else the mean of a request by their number, which is exact."""
    stated = count(part(successes, total, "total"))
    mean = number(part(successes, each, "mean"))
    return stated if stated is not None or mean is None or answered is None else count(float(round(mean * answered)))


def _client(load: dict, successes: dict, tally: Tally) -> dict[tuple[str, str], float]:
    latency = part(successes, "latency")
    met = number(part(successes, "goodput_metrics", "goodput_percentage"))
    lengths = part(successes, "prompt_len")
    if not isinstance(lengths, dict) and isinstance(told := part(successes, "prompt_tokens"), dict):
        lengths = {key: value for key, value in told.items() if key not in ("total", "cached", "uncached")}
    return merged(
        [
            *(distribution(ours, part(latency, theirs), tally) for theirs, ours in _LATENCIES.items()),
            distribution("schedule_delay", load.get("schedule_delay"), tally),
            distribution("prompt_tokens", lengths, tally),
            distribution("output_tokens", part(successes, "output_len"), tally),
            {} if met is None else {("slo_attainment", "mean"): met / 100},
        ]
    )


def _server(successes: dict, tally: Tally) -> dict[tuple[str, str], float]:
    cache = distribution("kv_usage", successes.get("kv_cache_usage_percentage"), tally)
    if cache and not any(cache.values()):
        tally.add("KV cache usage", "0 in every statistic: most likely the server has no gauge of that name")
        cache = {}
    elif any(not 0 <= value <= 1 for value in cache.values()):
        tally.add("KV cache usage", "not between 0 and 1")
        cache = {}
    answered = count(successes.get("count"))
    others = [distribution(ours, successes.get(theirs), tally) for theirs, ours in _SERVER.items()]
    return merged([cache, *others]) if answered else {}


def _single(source: Source, tally: Tally) -> Iterator[Item]:
    requests, order = Requests(source), 0
    stages = re.search(r"stage_(\d+)", _parts(source.name)[1])
    for offset, entry in objects(source, tally):
        row = _request(entry, order, tally, offset)
        if row is not None:
            stage = count(entry.get("stage_id"))
            stage = int(stages[1]) if stage is None and stages else stage
            requests.add(stage=None if stage is None else stage_name(source.name, stage), **row)
            order += 1
        yield from requests.full()
    if not order:
        raise InputError(
            "no single request in it",
            where=source.name,
            expected='an array of requests with "start_time" and "end_time"',
        )
    yield from requests.rest()
    tally.add(
        "times of day",
        "not told: arrivals count from an unknown start, only their differences mean something",
        count=order,
    )


def _request(entry: dict, order: int, tally: Tally, offset: int) -> dict[str, Any] | None:
    start, end = seconds_to_ns(entry.get("start_time")), seconds_to_ns(entry.get("end_time"))
    if start is None or end is None:
        tally.add("requests", "without a start and an end", offset)
        return None
    told, error = part(entry, "computed_metrics"), entry.get("error")
    answer = part(entry, "info", "response_metrics") or part(entry, "info")
    moments = whole_ns(part(answer, "output_token_times"))
    if moments is not None and len(moments) < 2:  # not streamed
        moments = None
    gaps = None if moments is None else np.diff(moments)
    if gaps is not None and gaps.min() < 0:
        tally.add("times between tokens", "they run backwards", offset)
        gaps = None
    usage = part(answer, "server_usage")
    prompt = part(entry, "info", "request_metrics", "text", "input_tokens")
    generated = count(part(answer, "output_tokens"))
    return {
        "id": str(order),
        "arrival_ns": start,
        "first_token_ns": None if moments is None else int(moments[0]),
        "last_token_ns": end if moments is None else int(moments[-1]),
        "ttft_ns": duration_ns(part(told, "time_to_first_token")) if moments is None else None,
        "gaps_ns": gaps,
        "prompt_tokens": count(
            next(
                (v for v in (prompt, part(entry, "info", "input_tokens"), part(told, "input_tokens")) if v is not None),
                None,
            )
        ),
        "cached_tokens": count(part(usage, "prompt_tokens_details", "cached_tokens")),
        "output_tokens": generated if generated is not None else count(part(told, "output_tokens")),
        "status": "completed" if error is None else "failed",
        "error": _error(error),
    }


def _error(error: Any) -> str | None:
    if isinstance(error, dict):
        return ": ".join(str(error[key]) for key in ("error_type", "error_msg") if error.get(key)) or "failed"
    return None if error is None else str(error)
