"""JetStream's benchmark_serving.py: its result file and what it prints. One load each.

Its "TPOT" is latency / output tokens, the first token included: ours is `normalized_tpot`. A request rate of 0 means
all at once. How many requests failed is not told: it counts the answered ones, and `num_prompts` before filtering.
"""

import re
from collections.abc import Iterator
from math import inf
from typing import Any

from collectors.base import Fact, Item, Source
from collectors.reading.documents import begins, distribution, document, merged, part, text
from collectors.reading.textlog import Tally, lines
from collectors.serving.serving_rows import Loads, count, number, rate, refuse_template
from errors import InputError

NAME = "jetstream"
TITLE = "JetStream benchmark result"
HELP = "JetStream benchmark_serving: its JetStream-*.json result, or what it printed."

_EXPECTED = 'a result of benchmark_serving.py: "metrics" and "dimensions", or its printed rows'
_ROW = re.compile(
    r"(?P<name>Successful requests|Benchmark duration|Total input tokens|Total generated tokens|Request throughput|"
    r"Input token throughput|Output token throughput|(?:Mean|Median|P99) (?:TTFT|TTST|TPOT)|Traffic request rate|"
    r"Benchmarking with request rate of)(?::| )\s*(?P<value>\S+)(?: (?:s|ms|requests/s|tokens/s))?\s*$",
    re.IGNORECASE,
)
_PRINTED = {
    "successful requests": "completed",
    "benchmark duration": "duration",
    "total input tokens": "total_input_tokens",
    "total generated tokens": "total_output_tokens",
    "request throughput": "request_throughput",
    "input token throughput": "input_throughput",
    "output token throughput": "output_throughput",
    "traffic request rate": "request_rate",
    "benchmarking with request rate of": "request_rate",
}
_METRICS = {"ttft": "ttft", "tpot": "normalized_tpot"}
_NEEDED = ("completed", "request_throughput", "mean_ttft_ms")


def sniff(source: Source) -> float:
    head = source.head
    if b"\0" in head:
        return 0.0
    if begins(source):
        known = all(key in head for key in (b'"dimensions"', b'"metrics"', b'"request_throughput"'))
        return 0.95 if known and re.search(rb'"mean_ttft_ms"|"mean_tpot_ms"', head, re.IGNORECASE) else 0.0
    shown = re.search(rb"Request throughput: \S+ requests/s", head) and re.search(rb"Mean TTFT: \S+ ms", head, re.I)
    return 0.9 if shown else 0.0


def read(source: Source) -> Iterator[Item]:
    """One load. Raises InputError for anything else, and for a template."""
    tally, loads = Tally(), Loads(source, NAME)
    if begins(source):
        result = document(source, _EXPECTED)
        metrics, about = part(result, "metrics"), part(result, "dimensions")
        if not isinstance(metrics, dict):
            raise InputError("no JetStream result", where=source.name, expected=_EXPECTED)
        results = [{str(key).lower(): value for key, value in metrics.items()}]
        asked = metrics.get("request_rate", part(about, "request_rate"))
    else:
        about, results = None, _printed(source)
        asked = results[0].get("request_rate")
    for found in results:
        if count(found.get("completed")) is None or number(found.get("request_throughput")) is None:
            raise InputError("no JetStream result", where=source.name, expected=_EXPECTED)
        loads.add(_columns(found, found.get("request_rate", asked), tally), _statistics(found, tally))
    yield from loads.rows()
    for key, name in (("model_id", "model"), ("accelerator", "chip")):
        said = text(part(about, key))
        if said and not said.startswith("no_"):
            yield Fact(name, said)
    yield from tally.lost()


def _printed(source: Source) -> list[dict[str, str]]:
    """Rows of the last result that was printed: those before it are of warm-ups."""
    found: dict[str, str] = {}
    latest: dict[str, str] = {}
    for _, line, _ in lines(source):
        match = _ROW.search(line)
        if not match:
            continue
        name = re.sub(r"\s+", " ", match["name"]).lower()
        key = _PRINTED.get(name) or "{}_{}_ms".format(*name.split())
        if key in found and key != "request_rate":
            latest, found = found, {k: v for k, v in found.items() if k == "request_rate"}
        found[key] = match["value"]
    found = found if all(key in found for key in _NEEDED) else {**latest}
    if any("x" in value.lower() for value in found.values()):
        raise refuse_template(source, "a JetStream result")
    if not found:
        raise InputError("no JetStream result", where=source.name, expected=_EXPECTED)
    return [found]


def _columns(found: dict[str, Any], asked: Any, tally: Tally) -> dict[str, Any]:
    into, out = number(found.get("input_throughput")), number(found.get("output_throughput"))
    duration = number(found.get("duration"))
    if duration is not None and duration <= 0:
        tally.add("duration", "0 or less: not known")
        duration = None
    return {
        "duration_s": duration,
        "requested_rate_per_s": inf if number(asked) == 0 else rate(asked),
        "completed": count(found.get("completed")),
        "input_tokens": count(found.get("total_input_tokens")),
        "output_tokens": count(found.get("total_output_tokens")),
        "request_rate_per_s": number(found.get("request_throughput")),
        "output_tokens_per_s": out,
        "total_tokens_per_s": into + out if into is not None and out is not None else None,
    }


def _statistics(found: dict[str, Any], tally: Tally) -> dict[tuple[str, str], float]:
    return merged(
        distribution(
            ours, {which: found.get(f"{which}_{theirs}_ms") for which in ("mean", "median", "p99")}, tally, scale=1e-3
        )
        for theirs, ours in _METRICS.items()
    )
