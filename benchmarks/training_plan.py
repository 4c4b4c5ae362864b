"""The search for layouts of a training job: how many are scored in a second.

    python -m benchmarks.training_plan [--times 5]

    score    seconds for 100,000 layouts of one model on one chip: memory and time of each
    search   seconds for all legal layouts of llama3.1-70b on every chip of the catalogue, at every number of chips that
             `whatif training` offers
    slider   seconds for what the page's sliders ask: another goodput, price and MFU on layouts that were swept before,
             and the picture drawn anew

Each is the median and worst of `--times`. calculon (github.com/calculon-ai/calculon) cannot be installed from a package
registry: what has its name there is something else. What its own README prints of its speed stands below, as published
and not measured here; it tells no number of executions for its search, so that no ratio can be told.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

from app.pages.training_planner.steering import picture
from app.whatif.training.answers import find
from app.whatif.training.asked import Asked
from app.whatif.training.moving import moved
from app.whatif.training.sweeps import forget
from catalog import chip, chips, model
from simulators.training.efficiency import fitted
from simulators.training.layout import Layouts, legal
from simulators.training.machine import machine
from simulators.training.memory import memory
from simulators.training.step import steps
from simulators.training.work import work

LAYOUTS = 100_000
PAGE = {
    "model": "llama3.1-70b",
    "on": "v5p,v6e,h100",
    "tokens": 2e12,
    "days": 30.0,
    "usd": 4e6,
    "price": "v5p=4.2,v6e=2.7,h100=3",
}
PUBLISHED = (
    "calculon, as published in its README (commit 013a664), not measured here: one calculation about 1 s with its "
    "start; the best execution of Turing-530B on 5,128 A100 about 1 min"
)
MODEL, CHIP, SEQ, BATCH = "llama3.1-405b", "h100", 8192, 2048


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=5)
    times = parser.parse_args(arguments).times
    on, of = machine(chip(CHIP)), model(MODEL)
    found = _many(legal(of, 4096, BATCH, SEQ, domain=on.domain))
    shares, terms = fitted(CHIP, "bf16", experts=False).efficiency, work(of, SEQ)

    def score() -> None:
        held = memory(of, found, SEQ, on.hbm_bytes)
        steps(terms, found, held.again, BATCH, on, shares)

    _print(f"score {len(found):,} layouts", _timed(score, times))
    asked = Asked(model="llama3.1-70b", on=",".join(chips()), tokens=2e12)
    tried = find(asked).tried

    def search() -> None:
        forget()
        find(asked)

    _print(f"search {tried:,} layouts on {len(chips())} chips", _timed(search, times))
    made = find(Asked(**PAGE))
    goodput = iter(np.linspace(0.6, 0.99, times))

    def slide() -> None:
        at = moved(made, made.first.planned.chips, goodput=next(goodput), price=2.5, mfu=0.4)
        picture(made, at).to_json()

    _print(f"slider over {len(made.choices):,} layouts on 3 chips", _timed(slide, times))
    print(PUBLISHED)

    print(f"load of the machine {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")


def _many(found: Layouts) -> Layouts:
    """So many of them, again and again."""
    return found.take(np.arange(LAYOUTS) % len(found))


def _timed(what: Callable[[], object], times: int) -> list[float]:
    took = []
    for _ in range(times):
        began = time.perf_counter()
        what()
        took.append(time.perf_counter() - began)
    return took


def _print(what: str, took: list[float]) -> None:
    print(f"{what:50} median {statistics.median(took):.3f} s, worst {max(took):.3f} s of {len(took)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
