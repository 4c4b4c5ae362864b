"""InferenceX (InferenceMAX before) aggregated results: one load of a served model on named hardware, times in seconds.

    agg_<...>.json     {"hw": "mi355x", "conc": 4, "tp": 8, "median_ttft": 0.297, "tput_per_gpu": 55.6, ...}

`tput_per_gpu` counts prompt and generated tokens per second by all GPUs; where prefill and decode have GPUs of their
own, `output_tput_per_gpu` is by those of decode. `intvty` is 1 / TPOT, and is not kept beside it. How many requests
were sent and how long it took is not told. Chip and format of the weights are told by the catalogue's names where it
has them, else as written.
"""

import re
from collections.abc import Iterator
from typing import Any

from catalog import chip
from catalog.formats import spelled
from collectors.base import Fact, Item, Source
from collectors.reading.textlog import Tally, clean
from collectors.serving.serving_rows import Loads, count, number, statistic
from collectors.serving.vllm_bench.objects import objects
from errors import InputError, QuestionError

NAME = "inferencex"
TITLE = "InferenceX result"
HELP = "InferenceX (InferenceMAX) aggregated results (JSON): rates per GPU and latencies in seconds of each load."

_KEYS = (b'"hw"', b'"conc"', b'"tput_per_gpu"', b'"median_ttft"', b'"mean_tpot"', b'"infmax_model_prefix"')
_STATISTIC = re.compile(r"(?P<which>[a-z]+|p\d{1,3}(?:\.\d+)?)_(?P<metric>ttft|tpot|itl|e2el)")
_METRICS = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2el": "e2e"}


def sniff(source: Source) -> float:
    head = source.head.lstrip(b"\xef\xbb\xbf \t\r\n[")
    found = sum(key in head for key in _KEYS)
    return 0.9 if head.startswith(b"{") and b'"tput_per_gpu"' in head and found >= 3 else 0.0


def read(source: Source) -> Iterator[Item]:
    """A load for each result. Raises InputError where there is none."""
    tally, loads, facts = Tally(), Loads(source, NAME), []
    for offset, found in objects(source, tally):
        if number(found.get("tput_per_gpu")) is None:
            tally.add("objects", "they are no result of InferenceX", offset)
            continue
        loads.add(_columns(found), _statistics(found, tally))
        facts.append(_facts(found, tally))
    if not len(loads):
        raise InputError(
            "no result of InferenceX in it",
            where=source.name,
            expected='JSON with keys such as "tput_per_gpu", "median_ttft", "conc"',
        )
    yield from loads.rows()
    for name in dict.fromkeys(name for said in facts for name in said):
        values = {said.get(name) for said in facts}
        if len(values) == 1:
            yield Fact(name, values.pop())
        else:
            tally.add(name, "not the same in all results of the file: it is told of none")
    yield from tally.lost()


def _columns(found: dict[str, Any]) -> dict[str, Any]:
    """Rates of all GPUs. Where two pools serve, those of decode make the output."""
    pools, whole = _pools(found), _gpus(found)
    decode = pools[1] if pools else whole
    every, out = number(found.get("tput_per_gpu")), number(found.get("output_tput_per_gpu"))
    return {
        "max_concurrency": count(found.get("conc")),
        "output_tokens_per_s": None if out is None or not decode else out * decode,
        "total_tokens_per_s": None if every is None or not whole else every * whole,
    }


def _pools(found: dict[str, Any]) -> tuple[int, int] | None:
    """(GPUs of prefill, of decode) where each has its own; None where they are one."""
    prefill, decode = count(found.get("num_prefill_gpu")), count(found.get("num_decode_gpu"))
    return (prefill, decode) if prefill and decode else None


def _gpus(found: dict[str, Any]) -> int | None:
    pools = _pools(found)
    return sum(pools) if pools else None if _true(found.get("disagg")) else count(found.get("tp"))


def _true(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.lower() == "true")


def _statistics(found: dict[str, Any], tally: Tally) -> dict[tuple[str, str], float]:
    stats = {}
    for key, value in found.items():
        match = _STATISTIC.fullmatch(key)
        which = statistic(match["which"]) if match else None
        if match is None or which is None or value is None:
            continue
        seconds = number(value)
        if seconds is None or seconds < 0:
            tally.add("statistics", f"no number, or negative: {clean(key)}")
        else:
            stats[_METRICS[match["metric"]], which] = seconds
    return stats


def _facts(found: dict[str, Any], tally: Tally) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for key, name in (
        ("model", "model"),
        ("hw", "chip"),
        ("framework", "engine"),
        ("precision", "weights_precision"),
        ("image", "engine_image"),
    ):
        if isinstance(value := found.get(key), str) and value:
            said[name] = clean(value)[:300]
    for name, known, what in (("chip", _chip, "chip"), ("weights_precision", spelled, "format of weights")):
        if name in said:
            if (entry := known(said[name])) is None:
                tally.add(name, f"{said[name][:40]!r} is no {what} of the catalogue: kept as written")
            said[name] = entry or said[name]
    pools = _pools(found)
    tensor = count(found.get("decode_tp" if pools else "tp"))
    for name, value in (
        ("chips", _gpus(found)),
        ("tensor_parallel_size", tensor),
        ("prefill_chips", pools and pools[0]),
        ("decode_chips", pools and pools[1]),
    ):
        if value:
            said[name] = value
    return said


def _chip(written: str) -> str | None:
    """The catalogue's name of the hardware; what stands behind the chip (`b200-trt`, `gb200_nvl72`) is how it is run.
    None for what it does not know."""
    for name in (written, re.split(r"[-_ ]", written, maxsplit=1)[0]):
        try:
            return chip(name).name
        except QuestionError:
            continue
    return None
