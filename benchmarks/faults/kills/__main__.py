"""`python -m benchmarks.faults.kills --kills 1000 --out FOLDER`: the table stands in FOLDER.

`--servers`: how many of the processes that are killed are servers with clients; the others are command lines.
"""

import argparse
import tempfile
import time
from pathlib import Path

from benchmarks.faults.kills.suite import Suite


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults.kills")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--servers", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    began, suite = time.monotonic(), Suite(asked.seed, asked.out)
    with tempfile.TemporaryDirectory() as folder:
        suite.commands(Path(folder) / "commands", asked.kills - asked.servers)
        if asked.servers:
            from benchmarks.faults.kills.servers import servers

            servers(suite, Path(folder) / "servers", asked.servers)
    told = suite.table() + f"\n{suite.killed:,} processes killed in {time.monotonic() - began:,.0f} s.\n"
    told += f"{len(suite.problems):,} problems.\n" + "".join(f"* {p}\n" for p in suite.problems[:100])
    (asked.out / "kills.md").write_text(told)
    print(told)
    return bool(suite.problems)


if __name__ == "__main__":
    raise SystemExit(main())
