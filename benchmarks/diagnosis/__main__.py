"""`python -m benchmarks.diagnosis make|answer|score`: makes cases, asks this product about them, scores an answer."""

import argparse
import json
import sys
from functools import partial
from pathlib import Path

from errors import ChipledgerError


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.diagnosis", description=__doc__.splitlines()[0])
    orders = parser.add_subparsers(dest="order", required=True)
    make = orders.add_parser("make", help="make cases, with their twins and truths; what is there already is kept")
    make.add_argument("--seed", type=int, required=True, help="from which the cases are drawn")
    make.add_argument("--cases", type=int, default=40, help="how many (default: 40)")
    make.add_argument("--out", type=Path, required=True, help="folder of the set")
    make.add_argument("--kinds", nargs="+", default=[], help="causes or families to draw from (default: all)")
    make.add_argument("--only", nargs="+", default=[], help="make only these cases, by name")
    answer = orders.add_parser("answer", help="ask this product about all cases of a set")
    answer.add_argument("set", type=Path, help="folder of the set")
    answer.add_argument("--out", type=Path, required=True, help="file of the answers; what it has is kept")
    score = orders.add_parser("score", help="score a tool's answers")
    score.add_argument("set", type=Path, help="folder of the set")
    score.add_argument("answers", type=Path, help="file of the answers")
    score.add_argument("--json", action="store_true", help="print JSON instead of tables")
    score.add_argument("--by-case", action="store_true", help="also print what was said of each case")
    options = parser.parse_args(argv)
    try:
        return {"make": _make, "answer": _answer, "score": _score}[options.order](options)
    except ChipledgerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _make(options: argparse.Namespace) -> int:
    from benchmarks.diagnosis.make import make

    make(options.out, options.seed, options.cases, options.kinds, options.only, partial(print, flush=True))
    return 0


def _answer(options: argparse.Namespace) -> int:
    from benchmarks.diagnosis.tools.chipledger import answers

    known = json.loads(options.out.read_text()) if options.out.exists() else {}
    said = answers(options.set, partial(print, flush=True), known)
    options.out.write_text(json.dumps(said, indent=1) + "\n")
    return 0


def _score(options: argparse.Namespace) -> int:
    from benchmarks.diagnosis.score import load, score, table

    scored = score(*load(options.set, options.answers))
    print(json.dumps(scored.to_dict(), indent=1) if options.json else table(scored, options.by_case))
    return 0


if __name__ == "__main__":
    sys.exit(main())
