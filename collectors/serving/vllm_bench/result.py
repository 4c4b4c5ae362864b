"""One saved result of `vllm bench serve --save-result` or of SGLang's `bench_serving`: a load, and its requests.

    requests    with --save-detailed or --output-details: arrays with one entry a request, in seconds
    failed      an error is written, or there is no token and no time to a first one. It has no latency.
    e2e_ns      `latencies`, else ttft + the sum of the gaps (which is how vLLM comes to it)
    arrival_ns  `start_times` where they are times of day. Where they count from elsewhere (a monotonic clock), they
                are shifted so that the last answer ends at `date`, when the result was written; without a date the
                first request is at 0 and the fact `request_times` says "since start".
With speculation a piece of output may be several tokens: gaps are kept as they are, and there are fewer than tokens.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from math import isfinite
from typing import Any

import numpy as np

from collectors.base import Fact, Item, Rows, Source
from collectors.reading.textlog import NS_PER_S, Buffer, Tally, clean, seconds_to_ns, within_64_bits
from collectors.serving.serving_rows import (
    ERROR_LIMIT,
    Loads,
    count,
    duration_ns,
    gaps_ns,
    milliseconds,
    number,
    rate,
    scaled,
)
from collectors.serving.serving_rows import statistic as statistic_of
from collectors.serving.vllm_bench.block import METRICS, without_empty
from collectors.serving.vllm_bench.check import differences, of_requests
from collectors.serving.vllm_bench.server_info import server_facts
from runs.schema import SCHEMAS

_STATISTIC = re.compile(
    r"(?P<which>[a-z]+|p\d{1,3}(?:\.\d+)?)_(?P<metric>ttft|tpot|itl|e2el|e2e_latency|client_queue_time)_ms"
)
_COLUMNS = {
    "request_rate": ("requested_rate_per_s", rate),
    "max_concurrency": ("max_concurrency", count),
    "completed": ("completed", count),
    "failed": ("failed", count),
    "total_input_tokens": ("input_tokens", count),
    "total_output_tokens": ("output_tokens", count),
    "request_throughput": ("request_rate_per_s", number),
    "request_goodput": ("goodput_per_s", number),
    "request_goodput:": ("goodput_per_s", number),  # as vLLM wrote it until 2025
    "output_throughput": ("output_tokens_per_s", number),
    "total_token_throughput": ("total_tokens_per_s", number),
    "total_throughput": ("total_tokens_per_s", number),
    "max_output_tokens_per_s": ("peak_output_tokens_per_s", number),
    "max_concurrent_requests": ("peak_concurrency", number),
}
_STATS = {  # key: (metric, statistic, what its number is divided by)
    "spec_decode_acceptance_rate": ("acceptance_rate", "mean", 100),
    "spec_decode_acceptance_length": ("acceptance_length", "mean", 1),
    "spec_decode_num_drafts": ("drafts", "total", 1),
    "spec_decode_draft_tokens": ("drafted_tokens", "total", 1),
    "spec_decode_accepted_tokens": ("accepted_tokens", "total", 1),
    "accept_length": ("acceptance_length", "mean", 1),
    "concurrency": ("concurrency", "mean", 1),
    "slo_attainment": ("slo_attainment", "mean", 1),
}
_SCALARS = {
    "diffusion_committed_throughput": "tokens/s",
    "diffusion_steps_per_canvas": None,
    "diffusion_committed_per_step": "tokens",
    "diffusion_committed_tokens": "tokens",
    "diffusion_denoising_steps": None,
    "diffusion_canvas_positions": None,
}
_FACTS = {"tensor_parallel_size": count, "data_parallel_size": count, "pipeline_parallel_size": count}
ALIKE = 1e-5
_DETAILS = ("input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times", "errors")
_RESULT = ("completed", "duration", "request_throughput", "total_input_tokens", "mean_ttft_ms", "mean_e2el_ms")
_EPOCHS = (9e8, 1e10)  # seconds since 1970 from 1998 on: what counts from elsewhere is far below


def is_result(value: dict[str, Any]) -> bool:
    """Whether an object is the result of a load: it holds at least two of the summary's keys."""
    return sum(key in value for key in _RESULT) >= 2


class Results:
    """Turns results into rows. `tool`: NAME of the collector; `latencies_from_gaps`: whether ttft and gaps add up to
    the latency that the tool's own statistics use."""

    def __init__(self, source: Source, tool: str, tally: Tally, *, latencies_from_gaps: bool):
        self.loads = Loads(source, tool)
        self._source, self._tally, self._from_gaps = clean(source.name), tally, latencies_from_gaps
        self._scalars = Buffer("scalars", "name", "value", "unit", "source")
        self._facts: dict[str, tuple[Any, str]] = {}

    def add(self, offset: int, result: dict[str, Any]) -> Iterator[Item]:
        """One result; yields the rows of its requests."""
        columns = {}
        for key, (column, read) in _COLUMNS.items():
            if (value := read(result.get(key))) is not None:
                columns.setdefault(column, value)
        columns["duration_s"] = duration_s = self._duration(result.get("duration"), offset)
        stats = self._stats(result)
        without_empty(stats, self._tally, offset)
        if columns.get("completed") == 0:
            self._tally.add(
                "loads", "no request was answered: the 0.0 written for times and rates are no measurement", offset
            )
        date_ns = _date(result.get("date"))
        if date_ns is not None:
            self._tally.add("dates", "they name no time zone and were read as UTC", offset)
            took_ns = seconds_to_ns(duration_s)
            columns["start_ns"] = None if took_ns is None else within_64_bits(date_ns - took_ns)
        stage = self.loads.name()
        if any(isinstance(result.get(key), list) and result[key] for key in ("ttfts", "output_lens")):
            rows, start_ns, failed = self._requests(stage, result, duration_s, date_ns, offset)
            columns.setdefault("failed", failed)
            columns["start_ns"] = start_ns if start_ns is not None else columns.get("start_ns")
            yield rows
        sent, answered = count(result.get("num_prompts")), columns.get("completed")
        if "failed" not in columns and sent and answered is not None and sent > answered:
            stats["to_send", "total"] = sent  # versions until 2025 do not count what failed
        self.loads.add(columns, stats, name=stage)
        self._others(stage, result)

    def rest(self) -> Iterator[Item]:
        """What all results together give."""
        yield from self.loads.rows()
        yield from self._scalars.rest()
        for name, (value, basis) in self._facts.items():
            yield Fact(name, value, basis)

    def _duration(self, value: object, offset: int) -> float | None:
        found = number(value)
        if value is not None and (found is None or found < 1e-9):
            self._tally.add("durations", "zero, negative or no number", offset)
            return None
        return found

    def _stats(self, result: dict[str, Any]) -> dict[tuple[str, str], float | None]:
        stats: dict[tuple[str, str], float | None] = {}
        for key, value in result.items():
            if (match := _STATISTIC.fullmatch(key)) and (which := statistic_of(match["which"])):
                seconds = milliseconds(value)
                if seconds is None and value is not None:
                    self._tally.add("statistics", f"no number, or negative: {key}")
                stats.setdefault((METRICS[match["metric"]], which), seconds)
        for key, (metric, which, divisor) in _STATS.items():
            if (value := number(result.get(key))) is not None:
                stats[metric, which] = scaled(value, divisor)
        shares = result.get("spec_decode_per_position_acceptance_rates")
        for position, share in enumerate(shares if isinstance(shares, list) else []):
            stats["acceptance_rate", f"per_position_{position}"] = number(share)
        return stats

    def _others(self, stage: str, result: dict[str, Any]) -> None:
        for key, unit in _SCALARS.items():
            if (value := number(result.get(key))) is not None:
                self._scalars.add(f"{stage}/{key}", value, unit, self._source)
        if isinstance(model := result.get("model_id"), str) and model:
            self._facts.setdefault("model", (clean(model)[:300], "measured"))
        for name, value in server_facts(result.get("server_info")).items():
            self._facts.setdefault(name, (value, "measured"))
        for name, read in _FACTS.items():
            if value := read(result.get(name)):
                self._facts.setdefault(name, (value, "declared"))  # a person's --metadata

    def _requests(
        self, stage: str, result: dict[str, Any], duration_s: float | None, date_ns: int | None, offset: int
    ) -> tuple[Rows, int | None, int]:
        """(its requests, when the first was sent, how many failed)."""
        details = {k: v for k in _DETAILS if isinstance(v := result.get(k), list) and v}
        lengths = {len(v) for v in details.values()}
        n = min(lengths)
        if len(lengths) > 1:
            self._tally.add("requests", f"arrays of different lengths, cut to the shortest: {sorted(lengths)}", offset)
        details = {k: v[:n] for k, v in details.items()}
        empty = [None] * n
        errors = [e if isinstance(e, str) else "" for e in details.get("errors", empty)]
        output = [count(v) for v in details.get("output_lens", empty)]
        prompt = [count(v) for v in details.get("input_lens", empty)]
        ttft = [number(v) for v in details.get("ttfts", empty)]
        failed = np.array([bool(e) or (o == 0 and not t) for e, o, t in zip(errors, output, ttft, strict=True)])
        gaps, broken = gaps_ns([None if f else g for f, g in zip(failed, details.get("itls", empty), strict=True)])
        if broken:
            self._tally.add("lists of gaps", "they hold something else than times", offset, broken)
        ttft_ns = [None if f else duration_ns(t) for f, t in zip(failed, ttft, strict=True)]
        sums = _gap_sums(gaps)
        e2e_ns = self._e2e(details, failed, ttft_ns, sums)
        if any(t is None and not f for t, f in zip(ttft_ns, failed, strict=True)) and "ttfts" in details:
            self._tally.add("times to first token", "no number, or negative", offset)
        arrival = self._arrivals(details, e2e_ns, date_ns, duration_s)
        status = ["failed" if f else "completed" for f in failed]
        batch = SCHEMAS["requests"].batch(
            {
                "id": [str(i) for i in range(n)],
                "stage": [stage] * n,
                "arrival_ns": arrival,
                "ttft_ns": ttft_ns,
                "e2e_ns": e2e_ns,
                "prompt_tokens": prompt,
                "output_tokens": output,
                "gaps_ns": gaps,
                "status": status,
                "error": [clean(e[:ERROR_LIMIT]) or None for e in errors],
                "source": [self._source] * n,
            }
        )
        self._compare(stage, result, ~failed, prompt, output, ttft_ns, e2e_ns, gaps, duration_s, offset)
        return Rows("requests", batch), min((a for a in arrival if a is not None), default=None), int(failed.sum())

    def _e2e(self, details: dict, failed: np.ndarray, ttft_ns: list, sums: list) -> list[int | None]:
        if "latencies" in details:
            return [None if f else duration_ns(v) for f, v in zip(failed, details["latencies"], strict=True)]
        return [t + s if t and s is not None else None for t, s in zip(ttft_ns, sums, strict=True)]

    def _arrivals(self, details: dict, e2e_ns: list, date_ns: int | None, duration_s: float | None) -> list[int | None]:
        starts = [number(v) for v in details.get("start_times", [None] * len(e2e_ns))]
        known = [s for s in starts if s is not None]
        if not known:
            return [None] * len(starts)
        ns = [seconds_to_ns(s) for s in starts]
        if all(_EPOCHS[0] < s < _EPOCHS[1] for s in known):
            return ns
        if any(a is None for a, s in zip(ns, starts, strict=True) if s is not None):
            self._tally.add("start times", "they are no times")
            return [None] * len(starts)
        ends = [a + e for a, e in zip(ns, e2e_ns, strict=True) if a is not None and e is not None]
        first = min(a for a in ns if a is not None)
        if date_ns is not None:
            last = max(ends) if ends else first + (seconds_to_ns(duration_s) or 0)
            shift = date_ns - last
            self._tally.add(
                "start times", "they count from no known moment: the last answer is taken to end at the result's date"
            )
        else:
            shift = -first
            self._facts["request_times"] = ("since start", "measured")
            self._tally.add("start times", "they count from no known moment: the first request is at 0")
        return [None if a is None else within_64_bits(a + shift) for a in ns]

    def _compare(
        self,
        stage: str,
        result: dict,
        done: np.ndarray,
        prompt: list,
        output: list,
        ttft_ns: list,
        e2e_ns: list,
        gaps: Any,
        duration_s: float | None,
        offset: int,
    ) -> None:
        """Name every number of the summary that is not what the requests give."""

        def floats(values: list) -> np.ndarray:
            return np.array([np.nan if v is None else v for v in values], dtype=float)

        flat = gaps.flatten().to_numpy(zero_copy_only=False) / 1e9 if gaps.null_count <= int((~done).sum()) else None
        e2e_s = floats(e2e_ns) / 1e9
        ours = of_requests(
            result,
            done,
            floats(prompt),
            floats(output),
            floats(ttft_ns) / 1e9,
            e2e_s if self._from_gaps or result.get("latencies") else None,
            flat,
            duration_s,
        )
        for key, printed, recomputed in differences(result, {k: v for k, v in ours.items() if v is not None}):
            if isfinite(recomputed) and not _reads_alike(printed, recomputed):
                what = f"the summary says {printed:.6g}, its requests give {recomputed:.6g}"
                self._tally.add(f"{stage}: {key}", what, offset)


def _reads_alike(printed: float, recomputed: float) -> bool:
    """Whether times or rates agree to five digits: what rounding explains is no finding. Counts are exact."""
    counts = printed == int(printed) and recomputed == int(recomputed) if isfinite(printed) else True
    return not counts and abs(printed - recomputed) <= ALIKE * abs(recomputed)


def _gap_sums(gaps: Any) -> list[int | None]:
    """The sum of each list of gaps, None where it is not known."""
    flat = gaps.values.to_numpy(zero_copy_only=False)
    running = np.concatenate([[0], np.cumsum(flat)])
    offsets = gaps.offsets.to_numpy()
    sums = (running[offsets[1:]] - running[offsets[:-1]]).tolist()
    return [s if valid else None for s, valid in zip(sums, gaps.is_valid().to_pylist(), strict=True)]


def _date(value: object) -> int | None:
    """`20260425-184718` as ns since the epoch, read as UTC; None where it is none."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.strptime(value.strip(), "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return within_64_bits(int((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * NS_PER_S)
