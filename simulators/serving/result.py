"""What a simulation came to: percentiles, what bounds it, how far off it may be, and the rows of a run.

Latencies are those of the engine: neither network nor client is in them. A gap between pieces of output (`itl_s`) is
counted for each piece after the first of each request.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from simulators.serving.engine import NOT_SERVED, Outcome
from simulators.serving.memory import room

NS = 1_000_000_000
START_NS = 1_767_225_600 * NS  # 2026-01-01: when a simulated run begins, where its traffic has no date
PERCENTILES = (50, 90, 95, 99)
BANDED = ("ttft_s", "tpot_s", "e2e_s")


@dataclass(frozen=True)
class Simulated:
    """The answer: `outcome` and how far off it may be. `band`: of each latency (lowest, highest) mean and p99 in
    seconds, and of `output_tokens_per_s`; `basis`: on what the shares of the peaks rest; `calibration`: as its own
    `to_dict` has it, None where there is none.
    """

    outcome: Outcome
    band: Mapping[str, Mapping[str, tuple[float, float]]]
    basis: str
    calibration: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        o, rows = self.outcome, self.outcome.served
        setup, steps = o.setup, o.steps
        seconds = sum(o.part_s.values())
        hits, looked = rows["cached"].sum(), rows["prompt"].sum()
        drafted = int(rows["drafted"].sum())
        return {
            "ttft_s": spread(rows["ttft_s"].to_numpy()),
            "tpot_s": spread(rows["tpot_s"].to_numpy()),
            "itl_s": gaps(o),
            "e2e_s": spread(rows["e2e_s"].to_numpy()),
            "queue_s": spread((rows["scheduled_s"] - rows["arrival_s"]).to_numpy()),
            "requests": len(o.requests),
            "refused": len(o.requests) - len(rows),
            "duration_s": o.duration_s,
            "request_rate_per_s": len(rows) / o.duration_s,
            "output_tokens_per_s": o.output_tokens_per_s,
            "total_tokens_per_s": o.output_tokens_per_s + looked / o.duration_s,
            "per_chip": o.output_tokens_per_s / setup.chips,
            "chips": setup.chips,
            "kv_usage_peak": float(steps["kv_usage"].max()),
            "running_peak": int(steps["running"].max()),
            "waiting_peak": int(steps["waiting"].max()),
            "preemptions": int(rows["preemptions"].sum()),
            "steps": len(steps),
            "bound": o.bound,
            "time_share": {part: s / seconds for part, s in o.part_s.items()},
            "prefix_hit_share": float(hits / looked) if hits else 0.0,
            "acceptance": float(rows["accepted"].sum() / drafted) if drafted else None,
            "error_band": {k: {n: list(v) for n, v in b.items()} for k, b in self.band.items()},
            "basis": self.basis,
            "efficiency": o.efficiency.to_dict(),
            "calibration": self.calibration,
            "setup": described(o),
            "traffic": o.traffic.name,
            "notes": list(self.notes),
        }


def spread(values: np.ndarray) -> dict[str, float] | None:
    """mean, p50, p90, p95, p99, max of what is known; None where nothing is."""
    known = values[np.isfinite(values)]
    if not len(known):
        return None
    found = np.percentile(known, PERCENTILES)
    return {
        "mean": float(known.mean()),
        **{f"p{p}": float(v) for p, v in zip(PERCENTILES, found, strict=True)},
        "max": float(known.max()),
    }


def gaps(outcome: Outcome) -> dict[str, float] | None:
    """The same of the gaps between successive pieces of output: each step's, as often as it stood between two."""
    values = np.concatenate((outcome.steps["gap_s"].to_numpy(), outcome.late_gaps_s))
    counts = np.concatenate((outcome.steps["gaps"].to_numpy(), np.ones(len(outcome.late_gaps_s))))
    values, counts = values[counts > 0], counts[counts > 0]
    if not len(values):
        return None
    order = np.argsort(values)
    values, upto = values[order], np.cumsum(counts[order])
    at = np.searchsorted(upto, np.array(PERCENTILES) / 100 * upto[-1])
    found = {f"p{p}": float(values[min(i, len(values) - 1)]) for p, i in zip(PERCENTILES, at, strict=True)}
    return {"mean": float((values * counts[order]).sum() / upto[-1]), **found, "max": float(values[-1])}


def described(outcome: Outcome) -> dict[str, Any]:
    """The setup in JSON, with what of it follows from the rest."""
    s = outcome.setup
    found = room(s)
    speculation = None if s.speculation is None else dict(vars(s.speculation))
    return {
        "model": s.model.name,
        "chip": s.chip.name,
        "chips": s.chips,
        "tensor": s.tensor,
        "expert": s.expert,
        "replicas": s.replicas,
        "weights_precision": s.weights_precision,
        "experts_precision": s.experts_precision,
        "kv_precision": s.kv_precision,
        "computes_in": s.machine.computes_in,
        "peak_flops_per_s": s.machine.flops_per_s,
        "memory_bytes_per_s": s.machine.bytes_per_s,
        "link": s.machine.link,
        "max_sequences": s.max_sequences,
        "token_budget": s.token_budget,
        "page_tokens": s.page_tokens,
        "memory_utilization": s.memory_utilization,
        "chunked": s.chunked,
        "asynchronous": s.asynchronous,
        "prefix_cache": s.prefix_cache,
        "speculation": speculation,
        "silent_tokens": s.silent_tokens,
        "weights_bytes_per_chip": found.weights_bytes,
        "reserve_bytes_per_chip": found.reserve_bytes,
        "kv_bytes_per_chip": found.cache_bytes,
    }


def from_runs(middle: Outcome, ends: tuple[Outcome, ...]) -> dict[str, dict[str, tuple[float, float]]]:
    """A band between simulations with the best and the worst shares that are assumed."""
    every = (middle, *ends)
    band: dict[str, dict[str, tuple[float, float]]] = {}
    for name in BANDED:
        found = [f for o in every if (f := spread(o.served[name].to_numpy()))]
        if len(found) == len(every):
            band[name] = {s: (min(f[s] for f in found), max(f[s] for f in found)) for s in ("mean", "p99")}
    rates = [o.output_tokens_per_s for o in every]
    return band | {"output_tokens_per_s": {"value": (min(rates), max(rates))}}


def from_errors(outcome: Outcome, off: Mapping[str, tuple[float, float]]) -> dict[str, dict[str, tuple[float, float]]]:
    """A band from the shares by which each of calibrate.METRICS may be off. Tokens per second are as far off as times
    per token, and no more than was asked for where requests come at times of their own."""
    band: dict[str, dict[str, tuple[float, float]]] = {}
    for name in ("ttft_s", "tpot_s"):
        if found := spread(outcome.served[name].to_numpy()):
            shares = {s: off[f"{name[:4]}_{s}"] for s in ("mean", "p99")}
            band[name] = {s: (found[s] * max(1 + lo, 0), found[s] * (1 + hi)) for s, (lo, hi) in shares.items()}
    low, high = off["tpot_mean"]
    rate = outcome.output_tokens_per_s
    fast = min(rate / max(1 + low, 0.01), max(rate, _most_tokens_per_s(outcome)))
    return band | {"output_tokens_per_s": {"value": (rate / (1 + high), fast)}}


def _most_tokens_per_s(outcome: Outcome) -> float:
    """What no machine exceeds, since the last request is not done before it comes; infinite where each request waits
    for another to be done."""
    first, last = outcome.requests["arrival_s"].min(), outcome.served["arrival_s"].max()
    if outcome.traffic.concurrency or not last > first:
        return float("inf")
    return float(outcome.served["output"].sum() / (last - first))


def _named(replica: np.ndarray, replicas: int) -> pa.Array:
    """`replica 0` and so on; unknown where it is below 0."""
    names = pa.array([f"replica {r}" for r in range(replicas)])
    return pa.DictionaryArray.from_arrays(pa.array(replica.astype(np.int32), pa.int32(), mask=replica < 0), names)


def tables(outcome: Outcome) -> dict[str, dict[str, Any]]:
    """The rows of the tables `requests` and `iterations`, as columns, on the calendar of the traffic."""
    origin = outcome.traffic.origin_ns or START_NS
    rows, steps = outcome.requests, outcome.steps
    done = rows["last_token_s"].notna().to_numpy()

    def moment(seconds: np.ndarray) -> list[int | None]:
        known = np.isfinite(seconds)
        whole = np.rint(np.where(known, seconds, 0) * NS).astype(np.int64) + origin
        return [int(w) if k else None for w, k in zip(whole, known, strict=True)]

    requests = {
        "id": [f"simulated-{i}" for i in range(len(rows))],
        "replica": _named(rows["replica"].to_numpy(), outcome.setup.replicas),
        "arrival_ns": moment(rows["arrival_s"].to_numpy()),
        "scheduled_ns": moment(rows["scheduled_s"].to_numpy()),
        "first_token_ns": moment(rows["first_token_s"].to_numpy()),
        "last_token_ns": moment(rows["last_token_s"].to_numpy()),
        "prompt_tokens": rows["prompt"].to_numpy(),
        "cached_tokens": rows["cached"].to_numpy(),
        "output_tokens": np.where(done, rows["output"], 0),
        "preemptions": rows["preemptions"].to_numpy(),
        "status": np.where(done, "completed", "failed").tolist(),
        "error": [None if d else NOT_SERVED for d in done],
    }
    if outcome.setup.speculation:
        requests |= {"accepted": rows["accepted"].to_numpy(), "drafted": rows["drafted"].to_numpy()}
    if outcome.gaps_s is not None:
        flat, counts = outcome.gaps_s
        whole = np.rint(flat * NS).astype(np.int64)
        requests["gaps_ns"] = [g.tolist() for g in np.split(whole, np.cumsum(counts)[:-1])]
    whole = {
        n: steps[n].to_numpy().astype(np.int64)
        for n in (
            "prefill_requests",
            "prefill_tokens",
            "recomputed_tokens",
            "decode_requests",
            "decode_tokens",
            "drafted_tokens",
            "accepted_tokens",
            "running",
            "waiting",
            "preempted",
        )
    }
    device = (steps["dur_s"] - steps["overhead_s"]).to_numpy()
    iterations = {
        "order": np.arange(len(steps)),
        "replica": _named(steps["replica"].to_numpy(), outcome.setup.replicas),
        "start_ns": np.rint(steps["start_s"].to_numpy() * NS).astype(np.int64) + origin,
        "dur_ns": np.rint(steps["dur_s"].to_numpy() * NS).astype(np.int64),
        "device_ns": np.rint(device * NS).astype(np.int64),
        **whole,
        "kv_usage": steps["kv_usage"].to_numpy(),
    }
    return {"requests": requests, "iterations": iterations}
