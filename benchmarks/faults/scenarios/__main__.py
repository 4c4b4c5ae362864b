"""Disks that fill or vanish, registries that are locked, gone or corrupt, clients that are slow or many: each tried
against a real server, `python -m benchmarks.faults.scenarios --out FOLDER`. Needs the right to mount.

What must hold of each: no answer of the server's own defects (5xx), one sentence where something cannot be done, what
can be done is done, and all of it works again once the fault is over, with nothing lost that was acknowledged.
"""

import argparse
import json
import shutil
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

from benchmarks.faults.kills.servers import warm
from benchmarks.faults.scenarios.clients import descriptors_run_out, idle_connections, slow_clients
from benchmarks.faults.scenarios.clocks import clock_jumps
from benchmarks.faults.scenarios.disks import disk_full, permissions_taken, store_unmounted
from benchmarks.faults.scenarios.registries import job_killed, registry_corrupt, registry_gone, registry_locked
from benchmarks.faults.scenarios.told import Told

SCENARIOS: tuple[Callable[[Told, Path], None], ...] = (
    disk_full,
    store_unmounted,
    permissions_taken,
    registry_locked,
    registry_gone,
    registry_corrupt,
    job_killed,
    slow_clients,
    idle_connections,
    descriptors_run_out,
    clock_jumps,
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults.scenarios")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", action="append", default=[])
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    warm()

    wrong = 0
    for scenario in SCENARIOS:
        if asked.only and scenario.__name__ not in asked.only:
            continue
        told, folder = Told(scenario.__name__), Path(tempfile.mkdtemp(prefix="faults-"))
        try:
            scenario(told, folder)
        except Exception as e:
            told.wrong.append(f"{type(e).__name__}: {e} {traceback.format_exc(limit=-2)}")
        shutil.rmtree(folder, ignore_errors=True)
        wrong += bool(told.wrong)
        print(
            f"## {told.name}: {'wrong' if told.wrong else 'holds'}",
            *told.seen,
            *(f"WRONG {w}" for w in told.wrong),
            sep="\n  ",
            flush=True,
        )
        (asked.out / f"{told.name}.json").write_text(json.dumps({"seen": told.seen, "wrong": told.wrong}, indent=1))
        (asked.out / f"{told.name}.txt").write_text(told.printed)
    return wrong


if __name__ == "__main__":
    raise SystemExit(main())
