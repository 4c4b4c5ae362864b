"""What the engine says of itself: `/metrics` with vLLM's names and buckets, and a log in the format of vLLM v1.

The word GPU in the log is that of vLLM's format, which uses it on any device.
"""

import logging
import threading
import time

from reference.serve.plan import Plan
from reference.serve.scheduler import Scheduler, Sequence

LATENCY = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
BUCKETS: dict[str, tuple[tuple[float, ...], str]] = {
    "time_to_first_token_seconds": (
        (
            0.001,
            0.005,
            0.01,
            0.02,
            0.04,
            0.06,
            0.08,
            0.1,
            0.25,
            0.5,
            0.75,
            1,
            2.5,
            5,
            7.5,
            10,
            20,
            40,
            80,
            160,
            640,
            2560,
        ),
        "From arrival to first token.",
    ),
    "inter_token_latency_seconds": (
        (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80),
        "Between successive pieces of output of a request.",
    ),
    "e2e_request_latency_seconds": (LATENCY, "From arrival to last token."),
    "request_queue_time_seconds": (LATENCY, "From arrival to being scheduled first."),
    "request_prefill_time_seconds": (LATENCY, "From being scheduled first to the first token."),
    "request_decode_time_seconds": (LATENCY, "From first to last token."),
    "request_inference_time_seconds": (LATENCY, "From being scheduled first to the last token."),
    "request_prompt_tokens": ((1, 2, 5, 10, 20, 50, 100, 200, 500), "Prompt tokens of a finished request."),
    "request_generation_tokens": ((1, 2, 5, 10, 20, 50, 100, 200, 500), "Generated tokens of a finished request."),
    "iteration_tokens_total": (
        (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384),
        "Tokens of an iteration, padding left out.",
    ),
}
COUNTERS = {
    "prompt_tokens": "Prompt tokens of requests whose prompt has been read, cached ones included.",
    "generation_tokens": "Tokens generated.",
    "num_preemptions": "Requests put back into the queue.",
    "prefix_cache_queries": "Prompt tokens looked up in the prefix cache.",
    "prefix_cache_hits": "Prompt tokens found in the prefix cache.",
    "spec_decode_num_drafts": "Times that a draft was verified.",
    "spec_decode_num_draft_tokens": "Draft tokens verified.",
    "spec_decode_num_accepted_tokens": "Draft tokens accepted.",
}
GAUGES = {
    "num_requests_running": "Requests running.",
    "num_requests_waiting": "Requests waiting.",
    "kv_cache_usage_perc": "Share of the pages allowed that requests hold, 0 to 1.",
}


class Histogram:
    def __init__(self, bounds: tuple[float, ...]):
        self.bounds, self.counts, self.count, self.total = bounds, [0] * len(bounds), 0, 0.0

    def observe(self, value: float) -> None:
        self.count, self.total = self.count + 1, self.total + value
        for i, bound in enumerate(self.bounds):
            self.counts[i] += value <= bound


class Metrics:
    """Counters, gauges and histograms. `record` is told of every iteration, `finish` of every request that ended."""

    def __init__(self, plan: Plan, scheduler: Scheduler):
        self._plan, self._scheduler, self._lock = plan, scheduler, threading.Lock()
        self.counters = dict.fromkeys(COUNTERS, 0)
        self.accepted_at = [0] * (plan.engine.row - 1)
        self.finished = {"length": 0, "abort": 0}
        self._gauges: dict[str, float] = dict.fromkeys(GAUGES, 0)
        self._histograms = {name: Histogram(bounds) for name, (bounds, _) in BUCKETS.items()}

    def record(self, row: dict, pieces: list[tuple[Sequence, int]], accepted_at: list[int], drafts: int) -> None:
        """An iteration: its row of `iterations`, who got how many tokens, and what drafts were worth so far."""
        with self._lock:
            c, s = self.counters, self._scheduler
            c["generation_tokens"] += sum(kept for _, kept in pieces)
            c["num_preemptions"] += row["preempted"]
            c["prefix_cache_queries"], c["prefix_cache_hits"] = s.prefix_queries, s.prefix_hits
            c["spec_decode_num_drafts"] = drafts
            c["spec_decode_num_draft_tokens"] += row["drafted_tokens"]
            c["spec_decode_num_accepted_tokens"] += row["accepted_tokens"]
            self.accepted_at = list(accepted_at)
            self._observe(
                "iteration_tokens_total", row["prefill_tokens"] + row["decode_requests"] + row["drafted_tokens"]
            )
            for sequence, _ in pieces:
                times = sequence.pieces_ns
                if len(times) == 1:
                    c["prompt_tokens"] += len(sequence.prompt)
                    self._observe("time_to_first_token_seconds", (times[0] - sequence.arrival_ns) / 1e9)
                else:
                    self._observe("inter_token_latency_seconds", (times[-1] - times[-2]) / 1e9)
            self._set_gauges()

    def finish(self, sequences: list[Sequence]) -> None:
        with self._lock:
            for s in sequences:
                self.finished["length" if s.status == "completed" else "abort"] += 1
                self._observe("request_prompt_tokens", len(s.prompt))
                self._observe("request_generation_tokens", len(s.output))
                if s.status == "completed":
                    first, last = s.pieces_ns[0], s.pieces_ns[-1]
                    self._observe("e2e_request_latency_seconds", (last - s.arrival_ns) / 1e9)
                    self._observe("request_queue_time_seconds", (s.scheduled_ns - s.arrival_ns) / 1e9)
                    self._observe("request_prefill_time_seconds", (first - s.scheduled_ns) / 1e9)
                    self._observe("request_decode_time_seconds", (last - first) / 1e9)
                    self._observe("request_inference_time_seconds", (last - s.scheduled_ns) / 1e9)
            self._set_gauges()

    def _set_gauges(self) -> None:
        s = self._scheduler
        self._gauges = dict(zip(GAUGES, (len(s.running), len(s.waiting), s.cache.usage), strict=True))

    def _observe(self, name: str, value: float) -> None:
        self._histograms[name].observe(value)

    def text(self) -> str:
        """The exposition of this moment."""
        who = f'engine="0",model_name="{self._plan.name}"'
        lines: list[str] = []

        def family(name: str, kind: str, words: str, *samples: tuple[str, str, float]) -> None:
            lines.extend((f"# HELP vllm:{name} {words}", f"# TYPE vllm:{name} {kind}"))
            lines.extend(f"vllm:{name}{suffix}{{{who}{labels}}} {value}" for suffix, labels, value in samples)

        with self._lock:
            config = self._plan.engine
            info = f',block_size="{config.page}",num_gpu_blocks="{config.pages}"'
            family("cache_config_info", "gauge", "Sizes of the KV cache.", ("", info, 1.0))
            for name, words in GAUGES.items():
                family(name, "gauge", words, ("", "", float(self._gauges[name])))
            for name, words in COUNTERS.items():
                family(name, "counter", words, ("_total", "", float(self.counters[name])))
            family(
                "spec_decode_num_accepted_tokens_per_pos",
                "counter",
                "Draft tokens accepted by position.",
                *(("_total", f',position="{i}"', float(n)) for i, n in enumerate(self.accepted_at)),
            )
            family(
                "request_success",
                "counter",
                "Requests that ended, by reason.",
                *(("_total", f',finished_reason="{why}"', float(n)) for why, n in self.finished.items()),
            )
            for name, (_, words) in BUCKETS.items():
                h = self._histograms[name]
                bounds = zip((*(float(b) for b in h.bounds), "+Inf"), (*h.counts, h.count), strict=True)
                family(
                    name,
                    "histogram",
                    words,
                    *(("_bucket", f',le="{b}"', float(n)) for b, n in bounds),
                    ("_count", "", float(h.count)),
                    ("_sum", "", h.total),
                )
        return "\n".join(lines) + "\n"


def logger_to(path: str) -> logging.Logger:
    """Lines as vLLM v1 writes them, times in UTC: `INFO 11-21 18:00:12 [loggers.py:170] ...`."""
    handler = logging.FileHandler(path)
    handler.setFormatter(
        logging.Formatter("%(levelname)s %(asctime)s [%(filename)s:%(lineno)d] %(message)s", "%m-%d %H:%M:%S")
    )
    handler.formatter.converter = time.gmtime
    log = logging.getLogger("reference.serve")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    return log


class StatLines:
    """The regular lines of the log, each about the time since the one before; an idle engine writes none."""

    def __init__(self, log: logging.Logger, metrics: Metrics, every_s: float):
        self._log, self._metrics, self._every_s = log, metrics, every_s
        self._last_s, self._before, self._quiet = time.monotonic(), self._now(), True

    def _now(self) -> dict:
        return self._metrics.counters | {"at": list(self._metrics.accepted_at)}

    def tick(self) -> None:
        """Writes what is due."""
        passed_s = time.monotonic() - self._last_s
        if passed_s < self._every_s:
            return
        before, now = self._before, self._now()
        self._last_s, self._before = time.monotonic(), now
        grown = {name: now[name] - before[name] for name in COUNTERS}
        was_quiet, self._quiet = self._quiet, not (grown["prompt_tokens"] or grown["generation_tokens"])
        if was_quiet and self._quiet:
            return
        running, waiting, usage = self._metrics._gauges.values()
        hits = now["prefix_cache_hits"] / max(now["prefix_cache_queries"], 1)
        self._log.info(
            "Engine 000: Avg prompt throughput: %.1f tokens/s, Avg generation throughput: %.1f tokens/s, "
            "Running: %d reqs, Waiting: %d reqs, GPU KV cache usage: %.1f%%, Prefix cache hit rate: %.1f%%",
            grown["prompt_tokens"] / passed_s,
            grown["generation_tokens"] / passed_s,
            running,
            waiting,
            usage * 100,
            hits * 100,
        )
        drafts, drafted, accepted = (
            grown[f"spec_decode_num_{n}"] for n in ("drafts", "draft_tokens", "accepted_tokens")
        )
        if drafts:
            at = [(n - b) / drafts for n, b in zip(now["at"], before["at"], strict=True)]
            self._log.info(
                "SpecDecoding metrics: Mean acceptance length: %.2f, Accepted throughput: %.2f tokens/s, "
                "Drafted throughput: %.2f tokens/s, Accepted: %d tokens, Drafted: %d tokens, "
                "Per-position acceptance rate: %s, Avg Draft acceptance rate: %.1f%%",
                1 + accepted / drafts,
                accepted / passed_s,
                drafted / passed_s,
                accepted,
                drafted,
                ", ".join(f"{rate:.3f}" for rate in at),
                100 * accepted / drafted,
            )
