"""What asking the registry costs: in a file, and on PostgreSQL beside it.

    python -m benchmarks.registry [--registry-file FILE] [--times 300] [--jobs 8]

Without an address, SQLite in a temporary folder alone. Measured, each as median and 95th of 100 of `--times`:

    state     what tells a list that anything changed: asked by each drawing of the library
    hidden    what a person may not see: asked by each request of somebody who does not see all
    tag       one change, as the pages make them
    beat      a worker says that so many `--jobs` go on: once a second at most
    claim     a worker looks for a job where none waits: once a second
    audit     an entry of the audit log

Beside it stand the processor time of this process for each, which does not depend on what else runs, and the load of
the machine.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from runs.audit_book import AuditBook, Entry
from runs.job_book import Beat, JobBook, Wanted
from runs.registry import Registry
from runs.share_book import ShareBook
from runs.shelf import Shelf


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--registry-file", type=Path, help="a file with the address of an empty registry")
    parser.add_argument("--times", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=8)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        for line in measure(Path(folder) / "registry.db", Path(folder), asked.times, asked.jobs):
            print(f"file        {line}", flush=True)
        if asked.registry_file:
            from app.registry_place import read_address
            from runs.postgres.server import server

            at = server(read_address(asked.registry_file))
            (beside := Path(folder) / "beside").mkdir()
            for line in measure(at, beside, asked.times, asked.jobs):
                print(f"PostgreSQL  {line}", flush=True)


def measure(at: Any, folder: Path, times: int, jobs: int) -> Iterator[str]:
    registry, shelf, book, audit = Registry(at), Shelf(at), JobBook(at), AuditBook(at)
    shares = ShareBook(at, folder) if not isinstance(at, Path) else ShareBook(at)
    for number in range(200):
        registry.tag(f"run{number}", "team", "ml")
    shares.share(["run1"], ["a"])
    for _ in range(jobs):
        book.ask(Wanted(job_id=uuid.uuid4().hex, what="ingest", arguments=["ingest"]), 1000)
    running = [book.claim("w", ["ingest"], lambda job_id: True) for _ in range(jobs)]
    beats = [Beat(job_id=one.job_id, progress=0.5, doing="reading") for one in running if one]
    groups = frozenset("b")
    acts: dict[str, Callable[[int], Any]] = {
        "state": lambda n: shelf.state(),
        "hidden": lambda n: shares.hidden(groups),
        "tag": lambda n: registry.tag(f"run{n % 200}", "n", str(n)),
        "beat": lambda n: book.beat("w", beats),
        "claim": lambda n: book.claim("w", ["ingest"], lambda job_id: True),
        "audit": lambda n: audit.note(Entry(what="tag a run", outcome="done", who="ann")),
    }
    for name, act in acts.items():
        cpu_s = time.process_time()
        took = sorted(_timed(act, number) for number in range(times))
        cpu_s = time.process_time() - cpu_s
        told = f"median {1e3 * statistics.median(took):6.2f} ms, 95th {1e3 * took[int(0.95 * times)]:6.2f} ms"
        told += f", {1e3 * cpu_s / times:5.2f} ms of this process's own time"
        yield f"{name:8} {told}, load {os.getloadavg()[0]:.1f} of {os.cpu_count()} cores"


def _timed(act: Callable[[int], Any], number: int) -> float:
    began = time.perf_counter()
    act(number)
    return time.perf_counter() - began


if __name__ == "__main__":
    main(sys.argv[1:])
