"""The serving planner against brute force: `python -m benchmarks.serving_plans [[first] plans]`.

Small plans are drawn from a seed. Of each, the winner must sustain its objectives over 20,000 requests, and no setup
that was offered may do so for less: each is served with as many replicas as would still cost less. Arrivals are drawn
anew three times (never as the planner has them): the winner is wrong where most draws break it, another setup is
cheaper where no draw breaks it; where draws disagree, the answer is at the edge. What the planner says a replica bears
is compared with a bisection over runs of 20,000 requests.

The judge shares the engine with the planner and nothing else: percentiles are of all requests but the first tenth, and
a queue grows where the requests in flight in the last fifth of the arrivals are half as many again as in the second.
"""

import sys
import time
from dataclasses import dataclass

import numpy as np

from catalog import chip, model
from simulators.serving.efficiency import TYPICAL
from simulators.serving.engine import simulate
from simulators.serving.objectives import Objectives, Shape
from simulators.serving.planner import Choice, Plan, Wanted, plan
from simulators.serving.setup import Setup

PLANS, REQUESTS, QUICK, SEEDS = 36, 20_000, 2_000, (11, 12, 13)
HOPELESS = 1.5  # an objective missed by so much in a quick run is missed in a long one
PRICES = {"TPU v6e": 2.7, "TPU v5e": 1.2, "H100 SXM": 3.5, "H200 SXM": 4.2, "B200": 6.5}
MODELS = {
    "llama3.1-8b": ("v6e", "v5e", "h100", "h200", "b200"),
    "llama3.1-70b": ("v6e", "h100", "h200", "b200"),
    "qwen3-32b": ("v6e", "h100", "b200"),
    "qwen3-30b-a3b": ("v6e", "h100", "h200"),
}
SHAPES = ((100, 100), (500, 100), (1000, 300), (2000, 100), (4000, 200), (200, 400))


@dataclass(frozen=True)
class Small:
    """One question to the planner."""

    wanted: Wanted
    chips: tuple[str, ...]
    prices: dict[str, float]

    @property
    def name(self) -> str:
        w, o = self.wanted, self.wanted.objectives
        kept = ", ".join(f"{n} {v:g}" for n, v in vars(o).items() if v is not None)
        return (
            f"{w.model.name} on {','.join(self.chips)}{'' if self.prices else ' (no prices)'}, {w.shape.prompt} + "
            f"{w.shape.output} (cv {w.shape.cv:g}) at {w.rate_per_s:g}/s, {kept}"
        )


def drawn(count: int) -> list[Small]:
    """The plans, always the same."""
    rng, made = np.random.default_rng(14), []
    for i in range(count):
        named = list(MODELS)[rng.integers(len(MODELS))]
        known = MODELS[named]
        chips = tuple(known[k] for k in sorted(rng.permutation(len(known))[: rng.integers(1, 4)]))
        prompt, output = SHAPES[rng.integers(len(SHAPES))]
        ttft = (None, 0.3, 1.0, 3.0)[rng.integers(4)]
        tpot = (None, 0.02, 0.03, 0.05)[rng.integers(4)]
        objectives = Objectives(ttft_s=ttft, tpot_s=tpot, percentile=(90.0, 99.0, 99.0)[rng.integers(3)])
        rate = float((2, 5, 10, 20, 40, 80)[rng.integers(6)])
        shape = Shape(prompt, output, 0, (1.0, 1.0, 2.0)[rng.integers(3)])
        wanted = Wanted(model=model(named), shape=shape, rate_per_s=rate, objectives=objectives)
        made.append(Small(wanted, chips, {} if i % 3 == 0 else PRICES))
    return made


def served(
    setup: Setup,
    shape: Shape,
    rate: float,
    requests: int,
    objectives: Objectives,
    worse: float = 1.0,
    seed: int = SEEDS[0],
) -> bool:
    """Whether the objectives, times `worse`, are kept and the queue does not grow."""
    rows = simulate(setup, shape.at(rate, requests, seed), TYPICAL, record=False, seed=seed).requests
    late = rows.iloc[requests // 10 :]
    for name in ("ttft_s", "tpot_s", "e2e_s"):
        most = getattr(objectives, name)
        if most is not None and np.percentile(late[name], objectives.percentile) > most * worse:
            return False
    arrival, fifth = rows["arrival_s"].to_numpy(), requests // 5
    flying = np.arange(requests) - np.searchsorted(np.sort(rows["last_token_s"].to_numpy()), arrival)
    before, after = flying[fifth : 2 * fifth].mean(), flying[-fifth:].mean()
    return bool(after <= 1.5 * worse * before + 10 * worse)


def sustains(setup: Setup, shape: Shape, rate: float, objectives: Objectives) -> int:
    """In how many draws of the arrivals the objectives are kept."""
    if not served(setup, shape, rate, QUICK, objectives, HOPELESS):
        return 0
    return sum(served(setup, shape, rate, REQUESTS, objectives, seed=s) for s in SEEDS)


def borne(setup: Setup, shape: Shape, near: float, objectives: Objectives) -> float:
    """The highest rate that is sustained by most draws, by bisection to 1 %."""

    def holds(rate: float) -> bool:
        return sustains(setup, shape, rate, objectives) > len(SEEDS) / 2

    low, high = near, near
    while not holds(low):
        low /= 1.1
    while holds(high):
        high *= 1.1
    while high > 1.01 * low:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def cheaper(made: Plan, small: Small, draws: int = len(SEEDS)) -> list[str]:
    """Setups that sustain the traffic in so many draws for less than the best costs."""
    best, wanted, found = made.best, made.wanted, []
    price = lambda c: small.prices.get(c.setup.chip.name, 1.0)  # noqa: E731
    most = best.chips * price(best) if best else float("inf")
    for choice in made.choices:
        each = choice.setup.replica_chips * price(choice)
        replicas = int(np.ceil(most / each * (1 - 1e-9))) - 1 if best else 64
        if replicas < 1 or not _fits(choice):
            continue
        if sustains(choice.setup, wanted.shape, wanted.rate_per_s / replicas, wanted.objectives) >= draws:
            found.append(f"{replicas} of {choice.name} ({choice.basis})")
    return found


def _fits(choice: Choice) -> bool:
    return not ("weights" in choice.why or "are left" in choice.why)


def main(first: int, last: int) -> int:
    wrong = near = 0
    off, seconds = [], []
    served(Setup(model=model("llama3.1-8b"), chip=chip("h100")), Shape(10, 4), 1.0, 10, Objectives())  # compiles
    for number, small in list(enumerate(drawn(last)))[first:]:
        began, cpu = time.perf_counter(), time.process_time()
        made = plan(small.wanted, [chip(c) for c in small.chips], small.prices, {})
        seconds.append(time.process_time() - cpu)
        best, w = made.best, small.wanted
        said, verdict = "nothing does it", "agrees"
        if best:
            held = sustains(best.setup, w.shape, w.rate_per_s / best.replicas, w.objectives)
            bears = borne(best.setup, w.shape, best.rate_per_replica, w.objectives)
            off.append(best.rate_per_replica / bears - 1)
            simulated = sum(c.basis == "simulated" for c in made.choices)
            said = f"{best.name}, a replica bears {best.rate_per_replica:.3g}/s ({off[-1]:+.1%}), {simulated} simulated"
            if held < len(SEEDS):
                verdict = f"sustained in {held} of {len(SEEDS)} draws" if held > len(SEEDS) / 2 else "BREAKS"
        if less := cheaper(made, small):
            verdict += f"; CHEAPER: {less}"
        wrong += "BREAKS" in verdict or "CHEAPER" in verdict
        near += "draws" in verdict and not less
        print(
            f"{number:2} {verdict}: {small.name}: {said}; {seconds[-1]:.1f} s of one core, with judging "
            f"{time.perf_counter() - began:.0f} s",
            flush=True,
        )
    count, off = last - first, off or [0.0]
    print(
        f"{count} plans: {count - wrong - near} agree, {near} at the edge, {wrong} wrong; a "
        f"replica bears {min(off):+.1%} to {max(off):+.1%} of what was found by bisection; a plan takes, of one "
        f"core, {np.median(seconds):.1f} s (median), {max(seconds):.1f} s at most"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    given = [int(a) for a in sys.argv[1:]]
    sys.exit(main(*(given if len(given) == 2 else (0, *(given or [PLANS])))))
