"""The walk of `whatif storage`: how fast it is, and how far it is from a walk of every request of every host.

    python -m benchmarks.storage [--times 5] [--seeds 10]

    answer   CPU seconds of all that the page shows when a slider moves, each time of other numbers of readers
    lumps    wait a step over step time, mean of `--seeds`: as asked, where one request, reader or host stands for more,
             and by a walk of every one of them

The second takes some minutes.
"""

import argparse
import statistics
import sys
import time
from dataclasses import replace

from app.pages.storage.figure import batches
from app.pages.storage.form import EXAMPLE
from app.whatif.storage import STORAGE
from app.whatif.storage.answers import find
from simulators.storage import waiting
from simulators.storage.pipe import Pipe
from simulators.storage.waiting import waits

EVERY = 4_000_000  # requests of a walk of all
SETTINGS = (  # hosts, readers, files of a batch, 99th percentile of a latency of 50 ms, batches ahead, step
    (64, 32, 320, 0.2, 2, 0.6),
    (64, 32, 320, 0.2, 2, 0.7),
    (64, 32, 320, 0.4, 2, 0.8),
    (64, 32, 320, 0.4, 4, 1.0),
    (128, 16, 64, 0.2, 2, 0.35),
    (256, 8, 8, 0.2, 2, 0.2),
    (256, 8, 8, 0.2, 1, 0.3),
    (1, 32, 2000, 0.2, 2, 3.7),
    (1, 256, 2000, 0.2, 2, 0.5),
    (64, 256, 1000, 0.2, 2, 0.4),
    (16, 512, 2000, 0.2, 2, 0.35),
    (1, 1024, 2000, 0.3, 2, 0.4),
)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=10)
    asked = parser.parse_args(arguments)
    _answer()
    took = [_answer(readers) for readers in range(33, 33 + asked.times)]
    print(f"answer  median {statistics.median(took):.3f} s, worst {max(took):.3f} s of CPU")
    for setting in SETTINGS:
        _lumps(setting, asked.seeds)


def _answer(readers: int = 32) -> float:
    begun = time.process_time()
    made = find(STORAGE.from_query([*{**EXAMPLE, "readers": str(readers)}.items()]))
    for rows, over in ((made.by_readers, "readers"), (made.by_file_bytes, "file_bytes")):
        batches(rows, over, made.step_s, readers)
    return time.process_time() - begun


def _lumps(setting: tuple[int, int, int, float, int, float], seeds: int) -> None:
    hosts, readers, files, p99_s, ahead, step_s = setting
    pipe = Pipe(batch_bytes=files * 1e5, file_bytes=1e5, readers=readers, latency_s=0.05)
    pipe = replace(pipe, latency_p99_s=p99_s, hosts=hosts, prefetch=ahead)
    lumped = statistics.mean(waits(pipe, step_s, seed).wait_s for seed in range(seeds)) / step_s
    every = statistics.mean(_every(pipe, step_s, seed) for seed in range(3)) / step_s
    print(f"lumps   {setting}: {lumped:.4f} as asked, {every:.4f} of every one")


def _every(pipe: Pipe, step_s: float, seed: int) -> float:
    names = ("SIDE_BY_SIDE", "IN_A_ROW", "HOSTS", "BUDGET")
    kept = {name: getattr(waiting, name) for name in names}
    try:
        for name in names:
            setattr(waiting, name, EVERY)
        return waits.__wrapped__(pipe, step_s, seed).wait_s
    finally:
        for name, value in kept.items():
            setattr(waiting, name, value)


if __name__ == "__main__":
    main(sys.argv[1:])
