"""MaxText metrics files: one JSON object a line, from `gcs_metrics` (metrics_step_000000_to_step_000099.txt) or
`metrics_file`. They carry full precision, but no time of day.

    dur_ns                  perf/step_time_seconds
    tokens_per_s_per_chip   perf/per_device_tokens_per_sec
    model_flops_per_chip    perf/per_device_tflops * 1e12, else perf/per_device_tflops_per_sec * 1e12 * seconds
    loss                    learning/loss
    attempt                 grows where the step number drops; null in a numbered file, which is a part of the run only
Every other number becomes a row of `scalars`; so do all numbers of evaluation records.
"""

import json
import re
from collections.abc import Iterator
from math import isfinite

from collectors.base import Fact, Item, Source
from collectors.reading.textlog import Buffer, Tally, clean, seconds_to_ns, whole
from errors import InputError

NAME = "maxtext_metrics"
TITLE = "MaxText metrics file"
HELP = "MaxText metrics files (metrics_step_*.txt or metrics_file): step times, throughput and losses as JSON lines."

_NAME = re.compile(r"metrics_step_\d+_to_step_\d+\.(?:txt|jsonl?)(?:\.gz)?$")
_KEYS = (b'"perf/', b'"learning/', b'"eval/', b'"evaluation/')
_OWN = {"perf/step_time_seconds", "perf/per_device_tokens_per_sec", "perf/per_device_tflops_per_sec", "learning/loss"}
_UNITS = {"perf/per_device_tflops": "TFLOP", "perf/per_device_tokens": "tokens", "eval/step_time_seconds": "s"}


def sniff(source: Source) -> float:
    first = source.head.lstrip().partition(b"\n")[0]
    if not (first.startswith(b"{") and b'"step":' in first and any(key in first for key in _KEYS)):
        return 0.0
    return 0.95 if _NAME.search(source.name) else 0.9


def read(source: Source) -> Iterator[Item]:
    """Steps, other metrics and the job's name. Raises InputError where no line is a metrics record."""
    tally = Tally()
    steps = Buffer(
        "steps",
        "attempt",
        "step",
        "dur_ns",
        "tokens_per_s_per_chip",
        "model_flops_per_chip",
        "loss",
        "order",
        "format",
        "source",
    )
    scalars = Buffer("scalars", "step", "name", "value", "unit", "source")
    names: dict[str, None] = {}
    attempt = None if _NAME.search(source.name) else 0
    last_step, order, records = -1, 0, 0
    for offset, line in source.text():
        if not line.strip():
            continue
        record = _record(line)
        step = whole(record.get("step")) if record else None
        if record is None or step is None:
            tally.add("lines", "they are no JSON object with a whole `step`", offset)
            continue
        records += 1
        if isinstance(name := record.get("run_name"), str) and name:
            names[clean(name)] = None
        numbers = {clean(k): float(v) for k, v in record.items() if k != "step" and _is_number(v)}
        trained = bool(_OWN & numbers.keys())
        if trained:
            if attempt is not None and step < last_step:
                attempt += 1
            last_step = step
            seconds = numbers.get("perf/step_time_seconds", -1.0)
            steps.add(
                attempt,
                step,
                seconds_to_ns(seconds) if seconds >= 0 else None,
                _finite(numbers.get("perf/per_device_tokens_per_sec")),
                _flops(numbers),
                numbers.get("learning/loss"),
                order,
                NAME,
                source.name,
            )
            order += 1
        for key, value in numbers.items():
            if not (trained and key in _OWN):
                scalars.add(step, key, value, _UNITS.get(key), source.name)
        yield from steps.full()
        yield from scalars.full()
    if not records:
        raise InputError(
            "no metrics record in it",
            where=source.name,
            expected='a JSON object a line with "step" and keys such as "perf/step_time_seconds"',
        )
    yield from steps.rest()
    yield from scalars.rest()
    for name in list(names)[:1]:
        yield Fact("job_name", name)
    if len(names) > 1:
        tally.add("further run names", f"one file should hold one run; also {', '.join(map(repr, list(names)[1:6]))}")
    yield from tally.lost()


def _record(line: str) -> dict | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _is_number(value: object) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1e300)


def _flops(numbers: dict[str, float]) -> float | None:
    tflops = _finite(numbers.get("perf/per_device_tflops"))
    if tflops is None:
        rate, seconds = numbers.get("perf/per_device_tflops_per_sec"), numbers.get("perf/step_time_seconds")
        tflops = rate * seconds if rate is not None and seconds is not None and seconds > 0 else None
    return _finite(tflops * 1e12) if tflops is not None else None


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None
