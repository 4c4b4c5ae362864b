"""A fleet of very many runs that no store holds: what a question takes after one of them is another.

    python -m benchmarks.fleet [--runs 1000000] [--times 20] [--jobs 0.05]

Runs of 1 to 30 hours within a year, each with six accounts and a calendar; eight teams, 300 owners, a third without a
price. `--jobs`: the share of runs that name a job, of which each has about five; a fiftieth of as many were made of the
files of another run. Told are the processor time of each question when it is first asked, and of each further one after
a run that was replaced, as median and 95th, with the bytes of memory that a run takes.
"""

import argparse
import os
import random
import statistics
import sys
import time
from collections.abc import Iterator

import numpy as np

from analyzers.fleet import FleetAsked, fleet
from analyzers.fleet.base import FleetRun
from analyzers.fleet.chosen import BLOCK, Book
from analyzers.fleet.parts import Parts
from analyzers.fleet.spent import Cells, Entry, Spent

S = 1_000_000_000
START_S, YEAR_S, HOUR_S = 1_750_000_000, 365 * 86_400, 3600
IN_STEPS = ("productive/useful_maths", "productive/below_roofline", "productive/straggler_wait")
PATHS = (*IN_STEPS, "badput/checkpoint_save", "badput/other", "unattributed")
ASKED = {
    "by team, every week": FleetAsked(),
    "by model, every month": FleetAsked(by="model", every="month"),
    "by owner, every day": FleetAsked(by="owner", every="day"),
    "since half a year": FleetAsked(since_ns=(START_S + YEAR_S // 2) * S),
}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--jobs", type=float, default=0.05)
    asked = parser.parse_args(arguments)
    for line in measure(asked.runs, asked.times, asked.jobs):
        print(line, flush=True)


def measure(count: int, times: int, jobs: float) -> Iterator[str]:
    """What is measured, a line each."""
    rng, book, load, began = random.Random(1), Book(), os.getloadavg(), _resident()
    for at in range(0, count, BLOCK):
        book.put({n: _run(n, count, jobs, rng) for n in range(at, min(at + BLOCK, count))})
    yield f"{count:,} runs; {(_resident() - began) / count:,.0f} bytes each"
    slots = np.arange(count)[::-1]
    for what, asked in ASKED.items():
        parts, took = Parts(), list[float]()
        for _ in range(times + 1):
            took.append(_asked(book, slots, asked, parts))
            slot = rng.randrange(count)
            book.put({slot: _run(slot, count, jobs, rng)})
        first, late = took.pop(0), sorted(took)[min(int(0.95 * times), times - 1)]
        later = f"then median {1e3 * statistics.median(took):,.0f} ms, 95th {1e3 * late:,.0f} ms"
        yield f"  {what:24} first {1e3 * first:,.0f} ms, {later}"
    yield f"load {load[0]:.1f} before, {os.getloadavg()[0]:.1f} after, {os.cpu_count()} cores"


def _asked(book: Book, slots: np.ndarray, asked: FleetAsked, parts: Parts) -> float:
    """Seconds of processor time."""
    began = time.process_time()
    fleet(book.chosen(slots), asked, kept=parts).to_dict()
    return time.process_time() - began


def _resident() -> int:
    with open("/proc/self/statm") as told:
        return int(told.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _run(number: int, count: int, jobs: float, rng: random.Random) -> FleetRun:
    hours, begin_s = rng.choice((1, 2, 5, 12, 30)), START_S + rng.randrange(YEAR_S)
    cells = hours + 1
    of = {
        "kept": [3_000_000_000] * cells,
        "checkpoint_save": [300_000_000 if n % 4 == 0 else 0 for n in range(cells)],
        "other": [0] * hours + [100_000_000],
    }
    spent = Spent(
        entries=tuple(Entry(path=path, chip_s=rng.expovariate(1e-4), basis="derived") for path in PATHS),
        held=((begin_s * S, (begin_s + hours * HOUR_S) * S),),
        cells=Cells(start_s=begin_s // HOUR_S * HOUR_S, each_s=HOUR_S, of=of),
        usd=rng.choice((None, 100 * rng.random(), 100 * rng.random())),
        useful_flops=1e18 * rng.random(),
        useful_told=True,
        inputs=(f"log of {number - (rng.random() < jobs / 50)}", "configuration"),
    )
    return FleetRun(
        run_id=f"{number:064x}",
        name=f"run {number}",
        created_ns=START_S * S + number,
        chip=rng.choice(("TPU v5p", "TPU v5e", "H100 SXM")),
        chips=8,
        model=rng.choice(("llama", "mixtral", "gpt")),
        job=f"job {rng.randrange(max(int(count * jobs / 5), 1))}" if rng.random() < jobs else "",
        tags={"team": rng.choice("abcdefgh"), "owner": f"person {rng.randrange(300)}"},
        goodput=0.9,
        mfu=0.4,
        spent=spent,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
