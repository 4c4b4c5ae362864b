"""AIPerf and its forerunner GenAI-Perf: single requests, and their sums.

    profile_export.jsonl               AIPerf: a request a line, with its metrics and their units
    profile_export.json                GenAI-Perf: times of day at which each piece of each answer came
    profile_export_{aiperf,genai_perf}.json   statistics over all requests of one load

Their "inter token latency" of a request is (latency - TTFT) / (output tokens - 1): TPOT by the field's other name. The
time between pieces is "inter chunk latency". GenAI-Perf without streaming writes the whole latency as TTFT: left out.
Files of one prefix tell of one load. The text of prompts and answers is not kept.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from collectors.base import Fact, Item, Source
from collectors.reading.documents import begins, distribution, document, merged, part, scaled, text, whole_ns
from collectors.reading.json_stream import objects
from collectors.reading.textlog import DATED, Tally, clean, fits, moment_ns, whole
from collectors.serving.serving_rows import Loads, Requests, count, number, rate
from errors import InputError

NAME = "aiperf"
TITLE = "AIPerf export"
HELP = "AIPerf and GenAI-Perf exports: profile_export.json(l) with single requests, *_aiperf.json, *_genai_perf.json."

_EXPECTED = "an export of AIPerf or GenAI-Perf: profile_export.json(l), *_aiperf.json or *_genai_perf.json"
_ENDING = re.compile(r"(?:profile_export)?(?:_(?:aiperf|genai_perf))?\.jsonl?(?:\.gz)?$")
_EXPERIMENTS = re.compile(rb'"experiments"\s*:\s*\[\s*\{\s*"experiment"\s*:')
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0}
_TIMES = {
    "time_to_first_token": "ttft",
    "inter_token_latency": "tpot",
    "inter_chunk_latency": "itl",
    "request_latency": "e2e",
}
_COUNTS = {
    "input_sequence_length": "prompt_tokens",
    "output_sequence_length": "output_tokens",
    "num_input_token": "prompt_tokens",
    "num_output_token": "output_tokens",
    "output_token_throughput_per_user": "output_tokens_per_s",
    "output_token_throughput_per_request": "output_tokens_per_s",
    "effective_concurrency": "concurrency",
}
_CONCURRENCY = (
    ("concurrency",),
    ("loadgen", "concurrency"),
    ("perf_analyzer", "stimulus", "concurrency"),
    ("stimulus", "concurrency"),
    ("phases", 0, "concurrency"),
    ("phases", "profiling", "concurrency"),
)
_MODELS = (("model_names", 0), ("model", 0), ("model",), ("endpoint", "model_names", 0), ("models", 0))


def sniff(source: Source) -> float:
    head = source.head
    if b"\0" in head or not begins(source):
        return 0.0
    if _of_records(head):
        return 0.95
    if _EXPERIMENTS.search(head):
        return 0.9  # when pieces came may stand behind a long prompt
    summed = all(key in head for key in (b'"request_latency"', b'"request_throughput"', b'"unit"', b'"avg"'))
    nothing = b'"aiperf_version"' in head and b'"error_request_count"' in head
    return 0.9 if summed or nothing else 0.0


def _of_records(head: bytes) -> bool:
    started = b'"request_start_ns"' in head or b'"timestamp_ns"' in head
    return started and b'"metadata"' in head and b'"metrics"' in head


def read(source: Source) -> Iterator[Item]:
    """A load with its statistics, or its requests. Raises InputError for anything else."""
    tally = Tally()
    if _of_records(source.head):
        yield from _records(source, tally)
    else:
        report = document(source, _EXPECTED, hook=_lighter)
        experiments = part(report, "experiments")
        if isinstance(experiments, list):
            yield from _experiments(source, experiments, tally)
        else:
            yield from _summary(source, _level(report), tally)
    yield from tally.lost()


def _stage(source: Source) -> str:
    """What the files of one load have in common: their name up to `profile_export`."""
    return clean(_ENDING.sub("", source.name).strip("/_- ") or "load")


# AIPerf: a request a line


def _records(source: Source, tally: Tally) -> Iterator[Item]:
    stage, requests, found = _stage(source), Requests(source), 0
    for offset, record in objects(source, tally):
        about, metrics = part(record, "metadata"), part(record, "metrics")
        start = whole(part(about, "request_start_ns"))
        if start is None:
            start = whole(part(about, "timestamp_ns"))  # as versions before 0.2 name it
        if start is None:
            tally.add("requests", "without the time at which they were sent", offset)
        elif part(about, "benchmark_phase") == "warmup":
            tally.add("requests", "of the warm-up: not part of the load")
        else:
            found += 1
            requests.add(stage=stage, **_record(record, about, metrics, start))
        yield from requests.full()
    if not found:
        raise InputError("no request in it", where=source.name, expected=_EXPECTED)
    yield from requests.rest()


def _record(record: dict, about: Any, metrics: Any, start: int) -> dict[str, Any]:
    error = record.get("error")
    status = "failed" if error else "completed"
    if part(about, "was_cancelled"):
        status = "aborted"
    done = status == "completed"
    ttft, e2e = (_ns(part(metrics, name)) if done else None for name in ("time_to_first_token", "request_latency"))
    unit = _SECONDS.get(str(part(metrics, "inter_chunk_latency", "unit")))
    gaps = whole_ns(part(metrics, "inter_chunk_latency", "value"), unit) if done and unit else None
    return {
        "id": text(part(about, "x_request_id")) or str(part(about, "session_num")),
        "arrival_ns": start,
        "first_token_ns": None if ttft is None or not fits(start + ttft) else start + ttft,
        "last_token_ns": None if e2e is None or not fits(start + e2e) else start + e2e,
        "gaps_ns": None if gaps is None or gaps.min() < 0 else gaps,
        "prompt_tokens": _tokens(metrics, "input_sequence_length", "error_isl"),
        "output_tokens": _tokens(metrics, "output_sequence_length", "output_token_count") if done else None,
        "status": status,
        "error": _error(error),
    }


def _ns(metric: Any) -> int | None:
    unit = _SECONDS.get(str(part(metric, "unit")))
    value = number(part(metric, "value"))
    if unit is None or value is None or not abs(value * unit) < 9e9:
        return None
    return round(value * unit * 1e9)


def _tokens(metrics: Any, *names: str) -> int | None:
    return next((n for name in names if (n := count(part(metrics, name, "value"))) is not None), None)


def _error(error: Any) -> str | None:
    if isinstance(error, dict):
        return ": ".join(str(error[key]) for key in ("type", "message") if error.get(key)) or str(error.get("code"))
    return str(error) if error else None


# GenAI-Perf: when each piece came


def _lighter(found: dict) -> dict:
    """A request of GenAI-Perf without its text: which of its pieces held any is told by `spoken`."""
    outputs = found.pop("response_outputs", None)
    found.pop("request_inputs", None)
    if isinstance(outputs, list):
        found["spoken"] = [_says_something(output) for output in outputs]
    return found


def _says_something(output: Any) -> bool:
    """Whether a piece of an answer holds text: the first of a chat and the last of any stream may not."""
    said = part(output, "response") if isinstance(output, dict) and "response" in output else output
    if isinstance(said, dict):
        return any(value not in (None, "") for value in said.values())
    if not isinstance(said, str) or "{" not in said:
        return bool(said) and "[DONE]" not in str(said)
    try:
        chunk = json.loads(said[said.index("{") : said.rindex("}") + 1])
    except (ValueError, RecursionError):
        return True
    choice = part(chunk, "choices", 0)
    if choice is None:
        return "choices" not in chunk if isinstance(chunk, dict) else True
    spoken = (
        part(choice, "text"),
        part(choice, "delta", "content"),
        part(choice, "message", "content"),
        part(choice, "delta", "reasoning_content"),
    )
    return any(isinstance(words, str) and words for words in spoken)


def _experiments(source: Source, experiments: list, tally: Tally) -> Iterator[Item]:
    requests, found, base = Requests(source), 0, _stage(source)
    for experiment in experiments:
        mode, value = part(experiment, "experiment", "mode"), number(part(experiment, "experiment", "value"))
        label = f" {clean(str(mode)[:40]).replace('_', ' ')} {value:g}" if mode and value is not None else ""
        entries = part(experiment, "requests")
        for entry in entries if isinstance(entries, list) else []:
            row = _pieces(entry)
            if row is None:
                tally.add("requests", "without times at which pieces of the answer came")
                continue
            requests.add(id=str(found), stage=base + label if len(experiments) > 1 else base, **row)
            found += 1
            yield from requests.full()
    if not found:
        raise InputError("no request in it", where=source.name, expected=_EXPECTED)
    yield from requests.rest()


def _pieces(entry: Any) -> dict[str, Any] | None:
    start, times = whole(part(entry, "timestamp")), part(entry, "response_timestamps")
    told = [whole(t) for t in times] if isinstance(times, list) else []
    times = [t for t in told if t is not None]
    if start is None or not times or len(times) < len(told):
        return None
    spoken = part(entry, "spoken")
    if isinstance(spoken, list) and len(spoken) == len(times):
        times = [t for t, said in zip(times, spoken, strict=True) if said] or times
    gaps = [b - a for a, b in zip(times, times[1:], strict=False)]
    return {
        "arrival_ns": start,
        "first_token_ns": times[0] if gaps else None,
        "last_token_ns": times[-1],
        "gaps_ns": gaps if gaps and all(0 <= gap < 1 << 62 for gap in gaps) else None,
        "status": "completed",
    }


# Statistics over all requests


def _summary(source: Source, report: Any, tally: Tally) -> Iterator[Item]:
    answered, failed = count(_average(report, "request_count")), count(_average(report, "error_request_count"))
    if not isinstance(part(report, "request_latency"), dict):
        if not failed:
            raise InputError("no summary of requests", where=source.name, expected=_EXPECTED)
        answered = answered or 0
    config, start = part(report, "input_config"), _moment(part(report, "start_time"))
    duration = _average(report, "benchmark_duration")
    loads = Loads(source, NAME)
    loads.add(
        {
            "start_ns": start,
            "duration_s": duration if duration and duration > 0 else None,
            "requested_rate_per_s": rate(_first(config, [(*path[:-1], "request_rate") for path in _CONCURRENCY])),
            "max_concurrency": count(_first(config, _CONCURRENCY)),
            "completed": answered,
            "failed": 0 if failed is None and answered is not None and part(report, "aiperf_version") else failed,
            "input_tokens": count(_average(report, "total_isl")),
            "output_tokens": count(_average(report, "total_osl")),
            "request_rate_per_s": _average(report, "request_throughput"),
            "goodput_per_s": _average(report, "goodput") or _average(report, "request_goodput"),
            "output_tokens_per_s": _average(report, "output_token_throughput"),
            "total_tokens_per_s": _average(report, "total_token_throughput"),
        },
        _statistics(report, tally),
        name=_stage(source),
    )
    yield from loads.rows()
    if model := text(_first(config, _MODELS)):
        yield Fact("model", model)
    if isinstance(valid := part(report, "submission_valid"), bool):
        yield Fact("aiperf_submission_valid", valid)
        if not valid:
            tally.add("result", "AIPerf calls it no valid submission")


def _level(report: Any) -> Any:
    """A summary with its metrics at the top, where versions before 0.3 hold them in `records`."""
    records = part(report, "records")
    if isinstance(records, list):
        records = {tag: metric for metric in records if isinstance(tag := part(metric, "tag"), str)}
    return {**records, **report} if isinstance(records, dict) and isinstance(report, dict) else report


def _average(report: Any, name: str) -> float | None:
    return number(part(report, name, "avg"))


def _first(config: Any, paths: Any) -> Any:
    return next((found for path in paths if (found := part(config, *path)) is not None), None)


def _moment(said: Any) -> int | None:
    match = DATED.search(said) if isinstance(said, str) else None
    return moment_ns(match) if match else None


def _statistics(report: Any, tally: Tally) -> dict[tuple[str, str], float]:
    found = []
    for theirs, ours in _TIMES.items():
        metric = part(report, theirs)
        unit = _SECONDS.get(str(part(metric, "unit")))
        if unit is None:
            if metric is not None:
                tally.add(f"statistics of {ours}", f"in an unknown unit, {str(part(metric, 'unit'))[:40]!r}")
        elif theirs == "time_to_first_token" and _same(metric, part(report, "request_latency")):
            tally.add("statistics of ttft", "the same as of the whole answer: it was not streamed")
        else:
            found.append(distribution(ours, _numbers(metric), tally, scale=unit))
    found += [distribution(ours, _numbers(part(report, theirs)), tally) for theirs, ours in _COUNTS.items()]
    return merged(found)


def _numbers(metric: Any) -> Any:
    """A metric without what is no statistic of one request."""
    drop = ("unit", "count", "sum")
    return {key: value for key, value in metric.items() if key not in drop} if isinstance(metric, dict) else None


def _same(one: Any, other: Any) -> bool:
    keys = [key for key in ("avg", "p50", "p99", "max") if number(part(one, key)) is not None]
    return len(keys) > 1 and all(scaled(part(one, key), 1) == scaled(part(other, key), 1) for key in keys)
