"""LLMPerf (ray-project): *_individual_responses.json with single requests, *_summary.json with their statistics.

A request with an error code failed, also one that only answered with too few tokens. When a request was sent is not
told. Its "inter token latency" is the whole latency, first token included, by output tokens: `normalized_tpot` in a
summary, and nothing that single requests would need. Files of one name tell of one load. Generated text is not kept.
"""

import re
from collections.abc import Iterator
from typing import Any

from collectors.base import Fact, Item, Source
from collectors.reading.documents import begins, distribution, document, merged, part, text
from collectors.reading.json_stream import objects
from collectors.reading.textlog import Tally, clean
from collectors.serving.serving_rows import Loads, Requests, count, duration_ns, number
from errors import InputError

NAME = "llmperf"
TITLE = "LLMPerf result"
HELP = "LLMPerf results: *_individual_responses.json with single requests, *_summary.json with their statistics."

_EXPECTED = 'LLMPerf results with "end_to_end_latency_s" of single requests, or "results_..." of a summary'
_ENDING = re.compile(r"_?(?:individual_responses|summary)?\.jsonl?(?:\.gz)?$")
_METRICS = {
    "ttft_s": "ttft",
    "end_to_end_latency_s": "e2e",
    "inter_token_latency_s": "normalized_tpot",
    "number_input_tokens": "prompt_tokens",
    "number_output_tokens": "output_tokens",
    "request_output_throughput_token_per_s": "output_tokens_per_s",
}


def sniff(source: Source) -> float:
    head = source.head
    if b"\0" in head or not begins(source):
        return 0.0
    single = b'"end_to_end_latency_s"' in head and b'"error_code"' in head and b'"number_output_tokens"' in head
    summed = b'"results_end_to_end_latency_s' in head or b'"results_ttft_s' in head
    return 0.9 if single or summed else 0.0


def read(source: Source) -> Iterator[Item]:
    """Requests, or a load with its statistics. Raises InputError for anything else."""
    tally = Tally()
    summary = b'"results_' in source.head and b'"error_code"' not in source.head
    yield from (_summary if summary else _single)(source, tally)
    yield from tally.lost()


def _stage(source: Source) -> str:
    return clean(_ENDING.sub("", source.name).strip("/_- ") or "load")


def _single(source: Source, tally: Tally) -> Iterator[Item]:
    stage, requests, found = _stage(source), Requests(source), 0
    for offset, entry in objects(source, tally):
        e2e, ttft = number(entry.get("end_to_end_latency_s")), number(entry.get("ttft_s"))
        if e2e is None and entry.get("error_code") is None:
            tally.add("requests", "without a latency and without an error", offset)
            continue
        tokens, failed = count(entry.get("number_output_tokens")), entry.get("error_code") is not None
        if not failed and _contradicts(tokens, e2e, number(entry.get("request_output_throughput_token_per_s"))):
            tally.add(
                "requests",
                "their tokens per second times their latency is another number of tokens than they "
                "state: the stated number is kept",
            )
        requests.add(
            id=str(found),
            stage=stage,
            ttft_ns=None if failed else duration_ns(ttft),
            e2e_ns=None if failed else duration_ns(e2e),
            prompt_tokens=count(entry.get("number_input_tokens")),
            output_tokens=tokens,
            status="failed" if failed else "completed",
            error=f"{entry['error_code']}: {entry.get('error_msg') or 'failed'}" if failed else None,
        )
        found += 1
        yield from requests.full()
    if not found:
        raise InputError("no request in it", where=source.name, expected=_EXPECTED)
    yield from requests.rest()


def _contradicts(tokens: int | None, e2e: float | None, per_s: float | None) -> bool:
    """Whether the throughput that a request states tells of another number of tokens, by more than one."""
    if tokens is None or e2e is None or per_s is None:
        return False
    return abs(per_s * e2e - tokens) > 1


def _summary(source: Source, tally: Tally) -> Iterator[Item]:
    report = document(source, _EXPECTED)
    flat = _flat(report)
    answered = count(flat.get("num_completed_requests"))
    if answered is None:
        raise InputError("no LLMPerf summary", where=source.name, expected=_EXPECTED)
    per_minute = number(flat.get("num_completed_requests_per_min"))
    loads = Loads(source, NAME)
    loads.add(
        {
            "duration_s": answered / per_minute * 60 if per_minute and per_minute > 0 and answered else None,
            "max_concurrency": count(part(report, "num_concurrent_requests")),
            "completed": answered,
            "failed": count(flat.get("number_errors")),
            "request_rate_per_s": None if per_minute is None else per_minute / 60,
            "output_tokens_per_s": number(flat.get("mean_output_throughput_token_per_s")),
        },
        _statistics(flat, tally),
        name=_stage(source),
    )
    yield from loads.rows()
    if model := text(part(report, "model")):
        yield Fact("model", model)


def _flat(report: Any) -> dict[str, Any]:
    """`results_*` of a summary by the rest of their name."""
    found = report.items() if isinstance(report, dict) else ()
    return {key.removeprefix("results_"): value for key, value in found if key.startswith("results_")}


def _statistics(flat: dict[str, Any], tally: Tally) -> dict[tuple[str, str], float]:
    found = []
    for theirs, ours in _METRICS.items():
        begin = f"{theirs}_"
        stats = {
            key.removeprefix(begin).removeprefix("quantiles_"): value
            for key, value in flat.items()
            if key.startswith(begin)
        }
        found.append(distribution(ours, stats, tally))
    return merged(found)
