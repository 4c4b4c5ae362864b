"""The engine's process: `main([plan, weights, host_s])`: as the diagnosis has it, with a host that works so long before
each iteration, and a line in vLLM's words that says how the engine was started. It has a core to itself: where client
and engine share two, a request of the one takes what the system gave to the other."""

import hashlib
import json
import os
import time
from pathlib import Path

from benchmarks.diagnosis.serving import worker
from reference.serve.engine import Engine


def main(argv: list) -> None:
    plan, weights, host_s = argv
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    if host_s:
        step = Engine.step

        def slowed(self: Engine) -> None:
            if self.busy:
                end, block = time.perf_counter() + float(host_s), bytes(65536)
                while time.perf_counter() < end:
                    block = hashlib.sha256(block).digest() * 2048
            step(self)

        Engine.step = slowed
    engine = json.loads(Path(plan).read_text())["engine"]
    said = {"max_num_seqs": engine["max_seqs"], "max_num_batched_tokens": engine["token_budget"]}
    Path("arguments.txt").write_text(f"non-default args: {said}\n")
    worker.main([plan, weights, False])
