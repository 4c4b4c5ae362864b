"""False alarms and power of the verdict, on the steps of real unchanged runs.

From the settled steps of each twin (A and C of the training pairs, by the workers' clocks) pairs of series are drawn
by blocks of BLOCK neighbours, so that what hangs together stays together. Both of a pair are drawn from one run, so
that nothing differs between them but chance: whatever is told is a false alarm. Then B is made longer by a true 1 %;
it has to be found wherever the comparison says beforehand that 1 % could be seen.

Series are LENGTHS long: a run of few steps is drawn from with more repetition, which makes its own scatter the truth.
"""

import json
from pathlib import Path

import numpy as np

from analyzers.difference.step_time import change_of, settled

PAIRS, BLOCK, SEED, TRUE = 200, 10, 23, 0.01
LENGTHS = (60, 150, 1000, 10000)


def told(folder: Path) -> str:
    """A table: pairs, false alarms, and of those with the steps to see 1 % how many were found."""
    runs = _runs(folder)
    if not runs:
        return "no training pairs are there"
    rng = np.random.default_rng(SEED)
    lines = ["| steps | pairs | false alarms | could see 1 % | of these found |", "| --- | --- | --- | --- | --- |"]
    for length in LENGTHS:
        alarms = able = found = 0
        for n in range(PAIRS):
            run = runs[n % len(runs)]
            a, b = (_drawn(run, length, rng) for _ in "ab")
            alarms += change_of(a, b).told
            longer = change_of(a, b * (1 + TRUE))
            if longer.detectable is not None and longer.detectable <= TRUE:
                able += 1
                found += longer.told and longer.change > 0
        share = f"{found} ({found / able:.1%})" if able else "-"
        lines.append(f"| {length:,} | {PAIRS} | {alarms} ({alarms / PAIRS:.1%}) | {able} | {share} |")
    return "\n".join([f"{len(runs)} unchanged runs, blocks of {BLOCK} steps, seed {SEED}:", "", *lines])


def _runs(folder: Path) -> list[np.ndarray]:
    found = []
    for path in sorted((folder / "truth").glob("*.json")):
        told = json.loads(path.read_text())
        if told["family"] != "training":
            continue
        for side in "ac":
            took = np.asarray(told["steps_s"][side]["0"])
            n = len(took)
            usual = settled(np.arange(n), took, np.zeros(n, bool), np.zeros(n, bool))
            if usual is not None and len(usual.seconds) >= 4 * BLOCK:
                found.append(usual.seconds)
    return found


def _drawn(run: np.ndarray, length: int, rng: np.random.Generator) -> np.ndarray:
    starts = rng.integers(0, len(run) - BLOCK + 1, -(-length // BLOCK))
    return np.concatenate([run[s : s + BLOCK] for s in starts])[:length]
