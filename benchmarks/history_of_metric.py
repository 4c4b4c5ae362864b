"""What the change points of a metric's history are worth: false alarms where nothing changed, and shifts found.

    python -m benchmarks.history_of_metric [SERIES]

Series of N runs with 1 % of scatter, of which neighbours correlate by R; normal, or heavy-tailed (Student's t with 3
degrees of freedom). Printed are the share of steady series that tell any change, and of those that tell a change or a
drift, and of series with one shift, at two thirds of them, those that tell one change, at most one run away from where
it is; and how many of the ranges told hold the shift. Then the share of steady series of independent nights, each slow
by 3 to 15 % with a chance of its own, that tell any change.
"""

import sys

import numpy as np

from analyzers.history_of_metric.change_points import change_points
from analyzers.history_of_metric.drift import drift

NIGHTS, SLOW = (40, 100, 200), (0.0, 0.05, 0.1, 0.2)
RUNS, CORRELATED, SHIFTS, SCATTER, WARM = (16, 40, 100), (0.0, 0.3, 0.6), (0.03, 0.05), 0.01, 50


def steady(rng: np.random.Generator, runs: int, r: float, heavy: bool) -> np.ndarray:
    noise = rng.standard_t(3, size=runs + WARM) / np.sqrt(3) if heavy else rng.normal(size=runs + WARM)
    for i in range(1, runs + WARM):
        noise[i] = r * noise[i - 1] + np.sqrt(1 - r * r) * noise[i]
    return SCATTER * noise[WARM:]


def found(rng: np.random.Generator, runs: int, r: float, heavy: bool, shift: float, series: int) -> tuple[float, float]:
    """(share of series in which the shift is found, share of the ranges told that hold it)."""
    at, hits, held = runs * 2 // 3, 0, 0
    for _ in range(series):
        told = change_points(steady(rng, runs, r, heavy) + shift * (np.arange(runs) >= at))
        if len(told) == 1 and abs(told[0].at - at) <= 1:
            hits += 1
            held += told[0].low <= shift <= told[0].high
    return hits / series, held / hits if hits else float("nan")


def _alarms(rng: np.random.Generator, runs: int, r: float, heavy: bool, series: int) -> tuple[int, int]:
    """Of so many steady series, how many tell a change, and how many a change or a drift."""
    changed = either = 0
    for _ in range(series):
        values = steady(rng, runs, r, heavy)
        told = bool(change_points(values))
        changed += told
        either += told or drift(values) is not None
    return changed, either


def nights(rng: np.random.Generator, runs: int, slow: float) -> np.ndarray:
    late = np.where(rng.random(runs) < slow, rng.uniform(0.03, 0.15, runs), 0.0)
    return np.log(1 + rng.normal(0, SCATTER / 2, runs) + late)


def main(series: int) -> None:
    print("runs  r    heavy  false alarms  or drift  " + "  ".join(f"{s:.0%} found, held" for s in SHIFTS))
    for runs in RUNS:
        for r in CORRELATED:
            for heavy in (False, True):
                rng = np.random.default_rng([runs, int(10 * r), heavy])
                alarms, either = (share / series for share in _alarms(rng, runs, r, heavy, series))
                shown = [found(rng, runs, r, heavy, s, max(series // 5, 20)) for s in SHIFTS]
                told = "  ".join(f"{hit:9.0%}, {held:4.0%}" for hit, held in shown)
                print(
                    f"{runs:4d}  {r:.1f}  {'yes' if heavy else 'no':5s}  {alarms:12.1%}  {either:8.1%}  {told}",
                    flush=True,
                )
    print("runs  slow  false alarms")
    for runs in NIGHTS:
        for slow in SLOW:
            rng = np.random.default_rng([runs, int(100 * slow)])
            alarms = sum(bool(change_points(nights(rng, runs, slow))) for _ in range(series)) / series
            print(f"{runs:4d}  {slow:4.0%}  {alarms:12.1%}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
