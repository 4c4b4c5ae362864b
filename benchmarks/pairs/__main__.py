"""Makes pairs of runs with one known change, and scores what the comparison says of them.

python -m benchmarks.pairs make --seed 23 --takes 2 --out FOLDER [--only KIND ...]  # `pip install .[reference]`
python -m benchmarks.pairs score FOLDER [--json]
python -m benchmarks.pairs resample FOLDER      # false alarms and power on resampled steps of unchanged runs
python -m benchmarks.pairs speed                # two traces of three million events, cold and warm
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path


def make(out: Path, seed: int, takes: int, only: Sequence[str]) -> None:
    from benchmarks.diagnosis.make import Bench
    from benchmarks.pairs import compiled, jobs, serving, training

    def wanted(family: str, kind: str) -> bool:
        return not only or family in only or kind in only or f"{family}-{kind}" in only

    with Bench(out.resolve()) as bench:
        (out / "pairs").mkdir(exist_ok=True)
        for take in range(takes):
            for change in jobs.changes(seed + take):
                if wanted("training", change.kind):
                    _tried(lambda c=change, t=take: training.make(bench, c, c.kind, t), f"{change.kind}-{take}")
            for served in serving.changes(seed + take):
                if wanted("serving", served.kind):
                    _tried(lambda c=served, t=take: serving.make(bench, c, t), f"serving-{served.kind}-{take}")
        for program in compiled.CHANGES:
            if wanted("compiled", program.kind):
                _tried(lambda c=program: compiled.make(bench.out, c), f"compiled-{program.kind}")


def _tried(make_one, name: str) -> None:
    """A pair that cannot be made is told, and the others are made all the same."""
    from errors import ChipledgerError

    try:
        make_one()
    except (RuntimeError, ChipledgerError) as e:
        print(f"{name}: could not be made, and is left out: {str(e)[:800]}", flush=True)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("--seed", type=int, required=True)
    making.add_argument("--takes", type=int, default=2)
    making.add_argument("--out", type=Path, required=True)
    making.add_argument("--only", nargs="*", default=())
    scoring = commands.add_parser("score")
    scoring.add_argument("folder", type=Path)
    scoring.add_argument("--json", action="store_true")
    drawing = commands.add_parser("resample")
    drawing.add_argument("folder", type=Path)
    commands.add_parser("speed")
    asked = parser.parse_args(arguments)
    if asked.command == "make":
        make(asked.out, asked.seed, asked.takes, asked.only)
    elif asked.command == "score":
        from benchmarks.pairs.score import score, table

        rows = score(asked.folder)
        print(json.dumps([r.to_dict() for r in rows], indent=1) if asked.json else table(rows))
    elif asked.command == "resample":
        from benchmarks.pairs.resample import told

        print(told(asked.folder))
    else:
        from benchmarks.pairs.speed import timed

        print(timed())


if __name__ == "__main__":
    main(sys.argv[1:])
