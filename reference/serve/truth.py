"""What was truly done in a run, from the records of the engine and of the client alone."""

import json
import os
import platform
from bisect import bisect_right
from statistics import median

from reference.serve.client import LEFT, Answer
from reference.serve.plan import Plan
from reference.train.bundle import cpu_model as cpu_model

_ITERATION_SUMS = (
    "prefill_tokens",
    "recomputed_tokens",
    "decode_tokens",
    "drafted_tokens",
    "accepted_tokens",
    "padded_tokens",
)


def truth_of(
    plan: Plan,
    said: dict,
    requests: list[dict],
    iterations: list[dict],
    answers: list[Answer],
    span_s: tuple[float, float],
) -> dict:
    """The truth file. `said`: the engine's events and counters; `span_s`: when the plan began and ended."""
    events = {e["event"]: e for e in said["events"]}
    start, warm, stop = events["start"], events["warm"], events["stop"]
    begun = [e["ns"] for e in said["events"] if e["event"] == "phase"]
    ends = [*begun[1:], round(span_s[1] * 1e9)]
    late_s = [a.sent_s - span_s[0] - a.ask.at_s for a in answers]
    return {
        "what": "What was truly done to the run beside this file, by the record of those who did it. "
        "All `_ns` are integer nanoseconds since 1970-01-01 UTC; one chip, so chip-seconds are seconds.",
        "plan": json.loads(plan.to_json()),
        "machine": {"cpu": cpu_model(), "cores": os.cpu_count(), "python": platform.python_version()},
        "peak": _peak(start["peak_rounds"]),
        "phases": [
            _phase(e, end, requests, iterations, begun)
            for e, end in zip((e for e in said["events"] if e["event"] == "phase"), ends, strict=True)
        ],
        "profile": [e for e in said["events"] if e["event"].startswith("profile")],
        "totals": _totals(said, requests, iterations),
        "speculation": {"drafts": said["drafts"], "accepted_at_position": said["accepted_at"]},
        "counters": said["counters"],
        "chip_seconds": _chip_seconds(said, start, warm, stop, iterations),
        "aborted": [r["id"] for r in requests if r["status"] == "aborted"],
        "left_by_the_client": [a.ask.id for a in answers if a.error == LEFT],
        "failed": [r["id"] for r in requests if r["status"] == "failed"],
        "preempted": {r["id"]: r["preemptions"] for r in requests if r["preemptions"]},
        "lateness_s": {"median": median(late_s), "max": max(late_s)},
        "programs": warm["programs"],
        "requests_columns": ["id", "phase", "tenant", "planned_ns", "sent_ns", "arrival_ns"],
        "requests": [
            [
                a.ask.id,
                a.ask.phase,
                a.ask.tenant,
                round((span_s[0] + a.ask.at_s) * 1e9),
                round(a.sent_s * 1e9),
                r["arrival_ns"],
            ]
            for a, r in zip(answers, requests, strict=True)
        ],
    }


def _peak(rounds: list[dict]) -> dict:
    rates = {}
    for r in rounds:
        rate = r["flops"] / ((r["end_ns"] - r["start_ns"]) / 1e9)
        rates[str(r["size"])] = max(rate, rates.get(str(r["size"]), 0.0))
    return {"flops_per_s": max(rates.values()), "flops_per_s_by_size": rates}


def _phase(event: dict, end_ns: int, requests: list[dict], iterations: list[dict], begun: list[int]) -> dict:
    """One phase: requests by when they arrived, iterations by when they began."""
    mine = [r for r in requests if r["stage"] == event["phase"]]
    number = begun.index(event["ns"])
    inside = [i for i in iterations if bisect_right(begun, i["start_ns"]) - 1 == number]
    ttft = [(r["first_token_ns"] - r["arrival_ns"]) / 1e9 for r in mine if r["first_token_ns"]]
    decode = [i["dur_ns"] / 1e9 for i in inside if not i["prefill_requests"]]
    middle = median(decode)
    return {
        "phase": event["phase"],
        "start_ns": event["ns"],
        "end_ns": end_ns,
        "pages_allowed": event["pages_allowed"],
        "requests": len(mine),
        "iterations": len(inside),
        "preemptions": sum(i["preempted"] for i in inside),
        "most_running": max(i["running"] for i in inside),
        "most_waiting": max(i["waiting"] for i in inside),
        "ttft_median_s": median(ttft),
        "ttft_max_s": max(ttft),
        "decode_iteration_median_s": middle,
        "decode_iteration_mad_s": median(abs(d - middle) for d in decode),
    }


def _totals(said: dict, requests: list[dict], iterations: list[dict]) -> dict:
    sums = {name: sum(i[name] for i in iterations) for name in _ITERATION_SUMS}
    return {
        "requests": len(requests),
        "completed": said["finished"]["length"],
        "aborted": said["finished"]["abort"],
        "failed": sum(r["status"] == "failed" for r in requests),
        "iterations": len(iterations),
        **sums,
        "rejected_tokens": sums["drafted_tokens"] - sums["accepted_tokens"],
        "generated_tokens": said["counters"]["generation_tokens"],
        "generated_while_reading": said["counters"]["generation_tokens"] - sums["decode_tokens"],
        "prompt_tokens": sum(r["prompt_tokens"] for r in requests if r["status"] != "failed"),
        "prompt_tokens_looked_up": said["counters"]["prefix_cache_queries"],
        "cached_tokens": said["counters"]["prefix_cache_hits"],
        "preemptions": said["counters"]["num_preemptions"],
    }


def _chip_seconds(said: dict, start: dict, warm: dict, stop: dict, iterations: list[dict]) -> dict:
    """Where the engine's time went, in seconds. The first five, with `idle` and `between_iterations`, make up `held`.

    `idle`: it waited and no request was there. `between_iterations`: taking requests up, metrics, lines of the log.
    The rest are parts of `device`: time in compiled programs, of iterations of each kind.
    """
    held = stop["ns"] - start["started_ns"]
    peak, weights = start["loading_ns"] - start["started_ns"], warm["programs"][0]["start_ns"] - start["loading_ns"]
    compiling = warm["programs"][-1]["end_ns"] - warm["programs"][0]["start_ns"]
    iterating, device = (sum(i[name] for i in iterations) for name in ("dur_ns", "device_ns"))
    kinds = {"prefill_only": 0, "decode_only": 0, "mixed": 0}
    for i in iterations:
        kind = "mixed" if i["prefill_requests"] and i["decode_requests"] else None
        kinds[kind or ("prefill_only" if i["prefill_requests"] else "decode_only")] += i["device_ns"]
    between = held - peak - weights - compiling - iterating - said["idle_ns"]
    parts = {
        "peak_benchmark": peak,
        "weights": weights,
        "compilation": compiling,
        "device": device,
        "host_in_iterations": iterating - device,
        "idle": said["idle_ns"],
        "between_iterations": between,
    }
    seconds = {name: ns / 1e9 for name, ns in (parts | {f"device_{k}": ns for k, ns in kinds.items()}).items()}
    return {"held": held / 1e9, "start_up": (peak + weights + compiling) / 1e9, **seconds}
