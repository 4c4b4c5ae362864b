"""`python -m benchmarks.faults.fuzz --files 100000 --out FOLDER`; it goes on where it was ended.

`--again NUMBER` makes one file of a hunt anew and reads it here, with the traceback.
"""

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from benchmarks.faults.fuzz.case import GOOD, case, try_case
from benchmarks.faults.fuzz.hunt import hunt
from benchmarks.faults.fuzz.seeds import seeds, warm

OUTCOMES, TABLE = "outcomes.jsonl", "table.md"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults.fuzz")
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[], help="a reader's name; may be repeated")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--part", default="1/1", help="K/N: every N-th file, for several processes at once")
    parser.add_argument("--again", type=int, help="make this one anew")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    known = seeds()
    make = partial(case, seed=asked.seed, seeds=known, only=asked.only)
    if asked.again is not None:
        return _again(make(asked.again), asked.out)
    part, parts = map(int, asked.part.split("/"))
    kept = asked.out / f"{OUTCOMES}.{part}"
    done = {told["number"] for told in _read(kept)}
    with tempfile.TemporaryDirectory() as folder:
        warm(known, Path(folder))
        numbers = [n for n in range(part - 1, asked.files, parts) if n not in done]
        with kept.open("a") as f:
            for outcome in hunt(make, numbers, Path(folder) / "cases"):
                f.write(json.dumps(outcome.to_dict()) + "\n")
                f.flush()
                if outcome.outcome not in GOOD:
                    print(outcome, flush=True)
    found = [told for one in sorted(asked.out.glob(f"{OUTCOMES}.*")) for told in _read(one)]
    (asked.out / TABLE).write_text(table(found))
    print(table(found))
    return any(told["outcome"] not in GOOD for told in found)


def _again(one, out: Path) -> int:
    (out / f"case-{one.number}-{Path(one.name).name}").write_bytes(one.data)
    print(one.reader, one.name, one.how, f"{len(one.data):,} bytes")
    with tempfile.TemporaryDirectory() as folder:
        print(try_case(one, Path(folder)))
    return 0


def _read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def table(found: Iterable[dict]) -> str:
    """How many files of each reader came to what, as Markdown."""
    count = Counter((told["reader"], told["outcome"]) for told in found)
    readers, outcomes = sorted({r for r, _ in count}), [*GOOD, *sorted({o for _, o in count} - set(GOOD))]
    rows = [("reader", *outcomes, "files"), ("---", *["--:"] * (len(outcomes) + 1))]
    rows += [(r, *(f"{count[r, o]:,}" for o in outcomes), f"{sum(count[r, o] for o in outcomes):,}") for r in readers]
    whole = [sum(count[r, o] for r in readers) for o in outcomes]
    rows.append(("all", *(f"{n:,}" for n in whole), f"{sum(whole):,}"))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    raise SystemExit(main())
