"""What a step waits for: the part of the pipe that binds."""

from dataclasses import replace
from typing import Literal

from simulators.storage.pipe import Pipe
from simulators.storage.waiting import nobody_waits

Limit = Literal["nothing", "latency", "stream", "host_network", "store", "request_rate", "decode", "prefetch", "spread"]


def limit(pipe: Pipe, step_s: float, seed: int = 0) -> Limit:
    """The part that alone takes longest, where that is longer than a step; else `spread` where a steady latency of the
    same mean would feed the step, and `prefetch` where it would not either: too little is asked for ahead."""
    if nobody_waits(pipe, step_s, seed):
        return "nothing"
    if pipe.least_batch_s > step_s:
        return _slowest(pipe)
    steady = replace(pipe, latency_s=pipe.mean_latency_s, latency_p99_s=None)
    return "spread" if pipe.sigma > 0 and nobody_waits(steady, step_s) else "prefetch"


def _slowest(pipe: Pipe) -> Limit:
    parts = pipe.parts
    requests = parts["latency"] + parts["stream"]
    if requests < pipe.least_batch_s:
        others: tuple[Limit, ...] = ("host_network", "store", "request_rate", "decode")
        return max(others, key=lambda name: parts[name])
    if pipe.in_flight < pipe.readers:
        return "prefetch"
    return "latency" if parts["latency"] >= parts["stream"] else "stream"
