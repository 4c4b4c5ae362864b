"""Pairs of real jobs with one known change, and how often the comparison names it.

    python -m benchmarks.pairs make --seed 5 --pairs 24 --out FOLDER     # needs `pip install .[reference]`
    python -m benchmarks.pairs score FOLDER [--json]

Each pair is drawn as a case of `benchmarks.diagnosis` is: a job of two or four JAX processes on CPU without its
fault (A) and with it (B). Beside them runs the same job once more without a fault (C): of A and C nothing may be said
to differ that did not. `score` ingests them into a store of its own and counts

    told      B is said to be slower, or quicker, where it is by the clocks of its workers
    named     the account that makes most of it is one that the fault can move (`MOVES`)
    size      the change of a step is within 20 % of what the workers' own clocks say
    alarms    C said to differ from A by more than their own clocks do: one in 200 is allowed for
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.diagnosis.case import Case
from benchmarks.diagnosis.draw import cases
from benchmarks.diagnosis.make import Bench
from benchmarks.diagnosis.training import bundle, launch, truth

HOST = ("idle_host_code", "straggler_wait", "idle_launching", "idle_unexplained", "device_idle")
PROGRAM = ("below_roofline", "useful_maths", "padding", "recomputation")
MOVES: dict[str, tuple[str, ...]] = {
    "slow_host": HOST,
    "garbage_collection": (*HOST, "idle_garbage_collection"),
    "jitter": HOST,
    "python_overhead": HOST,
    "device_to_host": (*HOST, "idle_device_to_host", "exposed_copies"),
    "slow_link": ("exposed_communication", "straggler_wait"),
    "slow_network": ("exposed_communication", "straggler_wait"),
    "excess_collectives": ("exposed_communication", "straggler_wait", *PROGRAM),
    "slow_loader": ("input_wait",),
    "uneven_loader": ("input_wait", "straggler_wait"),
    "recompile_constant": ("compilation", "straggler_wait"),
    "batch_padding": PROGRAM,
    "dims_padding": PROGRAM,
    "precision": (*PROGRAM, "exposed_communication"),
    "tiny_operations": (*HOST, *PROGRAM),
    "recomputation": PROGRAM,
    "wrong_flags": PROGRAM,
}
SIZE = 0.2  # how near the change of a step must be to the workers' clocks


def make(out: Path, seed: int, count: int) -> None:
    """Pairs below `out/pairs/`, and what the workers' clocks say of each in `out/truth/`."""
    with Bench(out.resolve()) as bench:
        for case in cases(seed, count, tuple(MOVES), healthy=0.0):
            told = out / "truth" / f"{case.name}.json"
            if told.exists() or len(case.planted) != 1:
                continue
            begun = time.monotonic()
            told.write_text(json.dumps(_pair(bench, case, out / "pairs" / case.name), indent=1) + "\n")
            print(f"{case.name}: {case.planted[0].cause}, {time.monotonic() - begun:.0f} s", flush=True)


def _pair(bench: Bench, case: Case, folder: Path) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    peak, told = bench.peak(case.processes), {"cause": case.planted[0].cause}
    for side, what in (("a", case.twin), ("b", case), ("c", case.twin)):
        with tempfile.TemporaryDirectory(prefix="pairs-") as scratch:
            ran = launch.run(what, Path(scratch) / "run", bench.cache(what), bench.nursery)
            bundle.write(what, ran, folder / side, peak)
            told[f"steps_s_{side}"] = list(truth.steps_s(ran).values())[1:]  # the first one compiles
    return told


def score(folder: Path) -> list[dict[str, Any]]:
    """What the comparison says of every pair."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="pairs-") as store:
        for path in sorted((folder / "truth").glob("*.json")):
            rows += _judged(json.loads(path.read_text()), folder / "pairs" / path.stem, Path(store) / path.stem)
            shutil.rmtree(Path(store) / path.stem, ignore_errors=True)
    return rows


def _judged(told: dict[str, Any], pair: Path, store: Path) -> list[dict[str, Any]]:
    from app.comparing.job_words import verdict
    from app.comparing.sides import compare_jobs
    from app.workspace import workspace
    from collectors.ingest import ingest

    place, rows = workspace(str(store)), []
    runs = {side: place.store.find(ingest([pair / side], place.store, name=side).run_id) for side in "abc"}
    for other in "bc":
        found = compare_jobs(runs["a"], runs[other], place)
        clock = np.mean(told[f"steps_s_{other}"]) / np.mean(told["steps_s_a"]) - 1
        change = found.step.change if found.step else None
        makers = [c.account for c in found.makers]
        rows.append(
            {
                "pair": pair.name,
                "cause": told["cause"] if other == "b" else "nothing",
                "clock": float(clock),
                "told": found.told,
                "change": change,
                "makers": makers[:3],
                "named": bool(makers) and makers[0] in MOVES[told["cause"]],
                "explained_share": found.explained_share,
                "verdict": verdict(found).whole,
            }
        )
    return rows


def _summary(rows: Sequence[dict[str, Any]]) -> str:
    changed = [r for r in rows if r["cause"] != "nothing"]
    same = [r for r in rows if r["cause"] == "nothing"]
    told = [r for r in changed if r["told"]]
    near = [r for r in told if abs(r["change"] - r["clock"]) <= SIZE * abs(r["clock"])]
    return (
        f"{len(changed)} changed pairs: {len(told)} told, {sum(r['named'] for r in told)} of these named, {len(near)} "
        f"within {SIZE:.0%} of the clocks; {len(same)} unchanged: {sum(r['told'] for r in same)} said to differ"
    )


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("--seed", type=int, required=True)
    making.add_argument("--pairs", type=int, default=24)
    making.add_argument("--out", type=Path, required=True)
    scoring = commands.add_parser("score")
    scoring.add_argument("folder", type=Path)
    scoring.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    if asked.command == "make":
        make(asked.out, asked.seed, asked.pairs)
        return
    rows = score(asked.folder)
    for row in rows:
        print(
            json.dumps(row) if asked.json else f"{row['pair']} {row['cause']} ({row['clock']:+.1%}): {row['verdict']}"
        )
    print(_summary(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
