"""Serving simulation side by side: `python -m benchmarks.serving [requests]`, our compiled loop and the plain one.

The peer is `benchmarks/serving_plain.py`: the same rules, one Python object a request, as simulators of serving are
usually written. Both serve the same traffic on the same setup; the largest difference between their times is printed.
"""

import resource
import sys
import time

import numpy as np

from benchmarks.serving_plain import serve
from catalog import chip, model
from simulators.serving.efficiency import TYPICAL
from simulators.serving.engine import simulate
from simulators.serving.result import Simulated, from_runs
from simulators.serving.setup import Setup
from simulators.serving.traffic import poisson

REQUESTS, RATE, PROMPT, OUTPUT = 100_000, 20.0, 800, 200
PEER = 2_000  # requests that the plain loop serves; its time is linear in them


def main(requests: int) -> int:
    setup = Setup(model=model("llama-3.1-8b"), chip=chip("h100"))
    simulate(setup, poisson(RATE, 2, PROMPT, 4))  # compiles, where nobody has
    began, cpu = time.perf_counter(), time.process_time()
    traffic = poisson(RATE, requests, PROMPT, OUTPUT, seed=1)
    outcome = simulate(setup, traffic)
    told = Simulated(outcome, from_runs(outcome, ()), "benchmark").to_dict()
    ours, ours_cpu = time.perf_counter() - began, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"ours:  {requests:,} requests, {told['steps']:,} steps, {requests * OUTPUT:,} tokens: {ours:.2f} s "
        f"({ours_cpu:.2f} s of one core), {peak:,.0f} MiB at most"
    )
    few = traffic.first(PEER)
    began = time.perf_counter()
    rows, engine = serve(
        setup, TYPICAL, list(zip(few.arrival_s.tolist(), few.prompt.tolist(), few.output.tolist(), strict=True))
    )
    theirs = time.perf_counter() - began
    print(
        f"plain: {len(few):,} requests, {engine.steps:,} steps: {theirs:.2f} s, so "
        f"{theirs / len(few) * requests:,.0f} s for {requests:,}"
    )
    mine = simulate(setup, few).requests
    off = max(
        float(np.abs(mine[column] - [getattr(r, name) for r in rows]).max())
        for column, name in (("first_token_s", "first"), ("last_token_s", "last"))
    )
    print(f"largest difference between their times: {off:.1e} s")
    return 0 if off < 1e-6 else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else REQUESTS))
