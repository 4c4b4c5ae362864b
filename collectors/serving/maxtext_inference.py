"""MaxText's inference microbenchmark: the time of one prefill at each length, and of one decode step, as JSON.

Each is the mean over a loop after a warm-up: here one iteration of an engine, prefill with a prompt of that length
(padded to it), decode with its global batch. Inserting a prefill into the batch, the bandwidth and the FLOP/s that the
program computed are scalars, by length in place of a step. What it says of sizes are facts.
"""

import re
from collections.abc import Iterator
from typing import Any

from collectors.base import Fact, Item, Source
from collectors.reading.documents import begins, document, part, text
from collectors.reading.textlog import Tally, clean
from collectors.serving.serving_rows import count, duration_ns, number, rows_of
from errors import InputError

NAME = "maxtext-inference"
TITLE = "MaxText inference result"
HELP = "MaxText inference_microbenchmark results (JSON): prefill by length, insert and decode step times."

_EXPECTED = 'results of inference_microbenchmark: "prefill" by length with "time_in_ms", or "autoregressive"'
_PREFILL = (("prefill", "time_in_ms"), ("Prefill", "prefill_time_in_ms"))
_DECODE = (("autoregressive", ""), ("AutoRegressive", "ar_"))
_INSERT = (("insert", "time_in_ms"), ("Insert", "insert_time_in_ms"))
_BOTH = (("prefill-insert", "time_in_ms"), ("Prefill_Insert", "prefill_insert_time_in_ms"))
_SIZES = {
    "model_size_in_gb": ("weights_bytes", 1e9),
    "cache_size_in_gb": ("kv_cache_bytes", 1e9),
    "model_params_in_billions": ("parameters", 1e9),
}


def sniff(source: Source) -> float:
    head = source.head
    if b"\0" in head or begins(source) != "{":
        return 0.0
    prefill = re.search(rb'"(?:prefill_)?time_in_ms"', head) and re.search(rb'"prefill', head, re.IGNORECASE)
    decode = re.search(rb'"(?:ar_)?step_in_ms_per_seq"', head)
    return 0.9 if decode or (prefill and b"tflops_per_sec_per_device" in head) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Iterations, scalars and facts. Raises InputError where there is neither a prefill nor a decode step."""
    tally = Tally()
    report = document(source, _EXPECTED)
    steps = [*_prefills(report, tally), *_decodes(report, tally)]
    if not steps:
        raise InputError("no prefill and no decode step in it", where=source.name, expected=_EXPECTED)
    name = clean(source.name)
    yield rows_of("iterations", [{"order": n, "source": name, **step} for n, step in enumerate(steps)])
    scalars = [{"source": name, **row} for row in _scalars(report, tally)]
    if scalars:
        yield rows_of("scalars", scalars)
    yield from _facts(report)
    tally.add("iterations", "each is the mean over a loop: how they spread is not told", count=len(steps))
    yield from tally.lost()


def _by_length(report: Any, places: tuple, what: str, tally: Tally) -> Iterator[tuple[int, dict, int]]:
    """(length, entry, ns) of each length that has a time above 0, by length."""
    for place, key in places:
        entries = part(report, place)
        for length, entry in sorted((entries or {}).items() if isinstance(entries, dict) else (), key=_length):
            tokens, ms = count(length), number(part(entry, key))
            ns = None if ms is None else duration_ns(ms / 1e3)
            if tokens is None or not tokens:
                continue  # other tables lie beside the lengths, such as sizes of results
            if not ns:
                tally.add(f"{what} times", "0 or less, or no number")
            else:
                yield tokens, entry, ns


def _length(item: tuple[Any, Any]) -> int:
    return count(item[0]) or 0


def _prefills(report: Any, tally: Tally) -> Iterator[dict[str, Any]]:
    for tokens, _, ns in _by_length(report, _PREFILL, "prefill", tally):
        yield {"dur_ns": ns, "prefill_requests": 1, "prefill_tokens": tokens, "decode_requests": 0, "decode_tokens": 0}


def _decodes(report: Any, tally: Tally) -> Iterator[dict[str, Any]]:
    for place, prefix in _DECODE:
        found = part(report, place)
        if not isinstance(found, dict):
            continue
        batch = count(found.get(f"{prefix}global_batch_size"))
        ms = number(found.get(f"{prefix}step_in_ms"))
        ns = None if ms is None else duration_ns(ms / 1e3)
        if not ns or not batch:
            tally.add("decode times", "0 or less, or without a batch")
        else:
            yield {
                "dur_ns": ns,
                "prefill_requests": 0,
                "prefill_tokens": 0,
                "decode_requests": batch,
                "decode_tokens": batch,
            }


def _scalars(report: Any, tally: Tally) -> Iterator[dict[str, Any]]:
    for what, places in (("insert", _INSERT), ("prefill and insert", _BOTH)):
        for tokens, _, ns in _by_length(report, places, what, tally):
            yield {"step": tokens, "name": f"{what} time by prompt length", "value": ns / 1e9, "unit": "s"}
    for place, key in _PREFILL:
        for tokens, entry, _ in _by_length(report, ((place, key),), "prefill", Tally()):
            rate = number(part(entry, f"{key.removesuffix('time_in_ms')}tflops_per_sec_per_device"))
            if rate is not None and rate > 0:
                yield {
                    "step": tokens,
                    "name": "prefill FLOP/s of a device by prompt length",
                    "value": rate * 1e12,
                    "unit": "FLOP/s",
                }
    for place, prefix in _DECODE:
        rate = number(part(report, place, f"{prefix}device_bandwidth_GB_per_second"))
        if rate is not None and rate > 0:
            yield {"name": "decode bandwidth of a device", "value": rate * 1e9, "unit": "B/s"}


def _facts(report: Any) -> Iterator[Fact]:
    sizes = part(report, "sizes") or part(report, "Sizes")
    for key, (name, scale) in _SIZES.items():
        if value := number(part(sizes, key)):
            yield Fact(name, value * scale)
    for key, name in (("model_name", "model"), ("tokenizer_path", "tokenizer")):
        if said := text(part(report, "config", key)):
            yield Fact(name, said)
