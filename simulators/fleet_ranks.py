"""A profile of some steps of a large synchronous job, simulated: when each rank entered and left the meeting of all.

Each rank computes, then all meet in one small all-reduce (the global gradient norm) that ends for all at the same
instant. Hosts' clocks are off; one rank may be slow. Times are rounded to microseconds, as traces have them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from simulators.fleet import host_name

US = 1_000
S = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class RanksPlan:
    """`step_s` before the meeting; `spread`: its variation from rank to rank and step to step, as a share;
    `late`: rank that takes `late_share` longer, in all but every `late_rests`-th step; `stages`: pipeline stages."""

    start_ns: int
    first_step: int
    steps: int
    hosts: int
    chips_per_host: int
    stages: int
    step_s: float
    transfer_s: float = 0.012
    spread: float = 0.0015
    clock_s: float = 0.0004
    late: int | None = None
    late_share: float = 0.06
    late_rests: int = 9
    seed: int = 0


def profile(plan: RanksPlan) -> dict[str, dict[str, Any]]:
    """Tables `captures`, `collectives` and the profiled host's `steps`, as columns."""
    rng = np.random.default_rng(plan.seed)
    ranks = plan.hosts * plan.chips_per_host
    took = plan.step_s * (1 + plan.spread * np.abs(rng.standard_normal((plan.steps, ranks))))
    if plan.late is not None:
        slow = np.arange(plan.steps) % plan.late_rests != plan.late_rests - 1
        took[slow, plan.late] += plan.late_share * plan.step_s
    met = took.max(axis=1) + plan.transfer_s
    begun = np.r_[0.0, np.cumsum(met)[:-1]]
    clock = np.repeat(rng.normal(0, plan.clock_s, plan.hosts), plan.chips_per_host)
    enter = _us(begun[:, None] + took + clock)
    leave = _us((begun + met)[:, None] + clock)
    rank = np.tile(np.arange(ranks, dtype=np.int32), plan.steps)
    host = rank // plan.chips_per_host
    names = [host_name(h) for h in range(plan.hosts)]
    step = plan.first_step + np.arange(plan.steps)
    count = ranks * plan.steps
    end = plan.start_ns + int(_us(begun[-1] + met[-1] + 1.0))
    return {
        "captures": {
            "capture": np.arange(plan.hosts, dtype=np.int32),
            "host": names,
            "process": np.arange(plan.hosts, dtype=np.int32),
            "start_ns": np.full(plan.hosts, plan.start_ns),
            "stop_ns": np.full(plan.hosts, end),
            "devices": np.full(plan.hosts, plan.chips_per_host, np.int32),
        },
        "collectives": {
            "capture": host,
            "host": np.array(names, dtype=object)[host],
            "rank": rank,
            "device": rank % plan.chips_per_host,
            "kind": ["all-reduce"] * count,
            "op": ["gradient-norm"] * count,
            "bytes": np.full(count, 4.0),
            "dtype": ["f32"] * count,
            "seq": np.repeat(np.arange(plan.steps), ranks),
            "step": np.repeat(step, ranks),
            "start_ns": plan.start_ns + enter.ravel(),
            "end_ns": plan.start_ns + leave.ravel(),
            "role": np.array([f"stage {s}" for s in range(plan.stages)], dtype=object)[rank * plan.stages // ranks],
        },
        "steps": {
            "capture": np.zeros(plan.steps, np.int32),
            "step": step,
            "host": [names[0]] * plan.steps,
            "start_ns": plan.start_ns + _us(begun),
            "dur_ns": _us(met),
        },
    }


def _us(seconds: np.ndarray) -> np.ndarray:
    """Nanoseconds, whole microseconds."""
    return np.round(np.asarray(seconds) * 1e6).astype(np.int64) * US
