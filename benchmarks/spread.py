"""Traces of many hosts read by one worker of a Dask cluster and by two, side by side, and what comes of it.

    python -m benchmarks.spread [--hosts 200] [--workers 1 2] [--kill-every 10] [--here] [--check] [--folder FOLDER]

The traces are those of the bundled reference run for any number of hosts, each with a clock of its own, one of them
slow (`spread_traces.py`). Measured for each number of workers, cluster and all on this machine's loopback:

    wall            `chipledger ingest --cluster` from its start to its exit, and the rate of bytes that it read
    coordinator     the most memory that this process had, and what it took of the processors
    worker          the most that any worker had, and what each took of the processors meanwhile
    straggler       whether the question `stragglers` names the slow host, and no other
    ledger          the largest difference of an account from that of the run read by one process (`--here`)

In the end both rates, and how many times as fast two workers are: on the wall, and by processor time alone, as if what
the one that asks does and what the busiest worker does came one after the other. That holds on a busy machine too.

`--kill-every S` measures once more with two workers of which one is killed every S seconds. `--here` reads the same in
one process without a cluster first. `--check` ends with 1 where something asked for does not hold: two workers 1.8
times as fast as one, a worker below 1 GB, the coordinator below 500 MB, the straggler found, the ledger equal to 1e-9.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import spread_traces
from benchmarks.dask_cluster import ROOT, DaskCluster, peak_bytes, processor_s

LEAST_RATIO, WORKER_BYTES, COORDINATOR_BYTES, LEDGER = 1.8, 10**9, 500 * 10**6, 1e-9


@dataclass
class Measured:
    """One ingest: seconds, the most memory of its processes, how many were killed, and answers about the run."""

    name: str
    wall_s: float
    coordinator_bytes: int
    worker_bytes: int
    run_id: str
    bytes: int = 0
    coordinator_s: float = 0.0  # of the processors
    workers_s: tuple[float, ...] = ()
    kills: int = 0
    slow: list[str] = field(default_factory=list)
    ledger: dict[str, float] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    asked: dict[str, tuple[float, int]] = field(default_factory=dict)  # seconds and peak bytes of each question


def ask(store: Path, run_id: str, question: str) -> tuple[Any, float, int]:
    """(answer as JSON, seconds, peak bytes of the process)."""
    command = [sys.executable, "-m", "app.cli", "--store", str(store), "show", run_id, question, "--json"]
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    told = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"show {question} ended with {process.returncode}")
    return json.loads(told), time.perf_counter() - began, used.ru_maxrss * 1024


def measure(
    name: str, traces: Path, folder: Path, cluster: DaskCluster | None, kill_every_s: float | None = None
) -> Measured:
    store = folder / f"store-{name.replace(' ', '-')}"
    command = [
        sys.executable,
        "-m",
        "app.cli",
        "--store",
        str(store),
        "ingest",
        str(traces),
        "--json",
        "--name",
        "many",
    ]
    command += ["--cluster", cluster.address] if cluster else []
    with _watched(cluster, kill_every_s) as seen, (folder / "told.json").open("wb+") as out:
        began = time.perf_counter()
        process = subprocess.Popen(command, cwd=ROOT, stdout=out)
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - began
        workers_s = seen.took_s()
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        told = json.loads(out.read() or b"{}")
    if process.returncode:
        raise RuntimeError(f"ingest with {name} ended with {process.returncode}")
    done = Measured(name, wall_s, used.ru_maxrss * 1024, seen.peak_bytes, told["run_id"], kills=seen.kills)
    done.bytes = sum(path.stat().st_size for path in traces.rglob("*") if path.is_file())
    done.coordinator_s, done.workers_s = used.ru_utime + used.ru_stime, workers_s
    done.rows = told["tables"]
    late, took_s, peak = ask(store, done.run_id, "stragglers")
    done.asked["stragglers"] = took_s, peak
    done.slow = [f"{row['host']}" for row in late["ranks"]]
    ledger, took_s, peak = ask(store, done.run_id, "ledger")
    done.asked["ledger"] = took_s, peak
    done.ledger = dict(_accounts(ledger["account"], ""))
    return done


def _accounts(account: dict[str, Any], above: str) -> Iterator[tuple[str, float]]:
    path = f"{above}/{account['name']}"
    yield path, float(account["chip_seconds"])
    for child in account.get("children", ()):
        yield from _accounts(child, path)


@dataclass
class _Seen:
    """The most memory that a worker had, how many were killed, and of each what it had taken of the processors when it
    was first seen."""

    peak_bytes: int = 0
    kills: int = 0
    first_s: dict[int, float] = field(default_factory=dict)

    def took_s(self) -> tuple[float, ...]:
        """What each that lives took since."""
        return tuple(max(processor_s(pid) - first, 0.0) for pid, first in self.first_s.items())


@contextmanager
def _watched(cluster: DaskCluster | None, kill_every_s: float | None) -> Iterator[_Seen]:
    """Notes what workers take, and kills one of them every so often."""
    seen, stop = _Seen(), threading.Event()

    def watch() -> None:
        next_kill = time.monotonic() + (kill_every_s or 0)
        while cluster is not None and not stop.wait(0.2):
            alive = cluster.workers()
            seen.peak_bytes = max(seen.peak_bytes, *(peak_bytes(pid) for pid in alive), 0)
            for pid in alive:
                seen.first_s.setdefault(pid, processor_s(pid))
            if kill_every_s and alive and time.monotonic() > next_kill:
                os.kill(alive[seen.kills % len(alive)], signal.SIGKILL)
                seen.kills += 1
                next_kill = time.monotonic() + kill_every_s

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()


def difference(one: dict[str, float], other: dict[str, float]) -> float:
    """The largest difference of an account, of the whole."""
    whole = max(map(abs, one.values()), default=1.0) or 1.0
    return max((abs(one.get(n, 0.0) - other.get(n, 0.0)) / whole for n in {*one, *other}), default=0.0)


def line(done: Measured, first: Measured, slow: int) -> str:
    named = done.slow == [f"vm/{slow}"]
    asked = ", ".join(f"{n} {s:.1f} s {b / 1e6:.0f} MB" for n, (s, b) in done.asked.items())
    took = " + ".join(f"{s:.1f}" for s in done.workers_s) or "0"
    return (
        f"{done.name:22} {done.wall_s:8.1f} s {rate(done):6.2f} MB/s  "
        f"coordinator {done.coordinator_bytes / 1e6:5.0f} MB {done.coordinator_s:.1f} s  "
        f"worker {done.worker_bytes / 1e6:5.0f} MB {took} s  kills {done.kills}  "
        f"straggler {'found' if named else done.slow}  "
        f"ledger off by {difference(first.ledger, done.ledger):.1e}  ({asked})"
    )


def rate(done: Measured) -> float:
    """In MB a second, on the wall."""
    return done.bytes / 1e6 / done.wall_s


def processors_alone_s(done: Measured) -> float:
    """How long it takes where nothing else runs and nothing is waited for: who asks, then the busiest worker."""
    return done.coordinator_s + max(done.workers_s, default=0.0)


def together(one: Measured, two: Measured) -> str:
    """What a second worker is worth."""
    by_processors = processors_alone_s(one) / processors_alone_s(two)
    return (
        f"1 worker {rate(one):.2f} MB/s, 2 workers {rate(two):.2f} MB/s: {one.wall_s / two.wall_s:.2f} times as fast "
        f"on the wall, {by_processors:.2f} by processor time alone; load {os.getloadavg()[0]:.1f}"
    )


def wrong(measured: list[Measured], slow: int) -> Iterator[str]:
    """What was asked for and does not hold."""
    first, walls = measured[0], {m.name: m.wall_s for m in measured}
    for done in measured:
        if done.slow != [f"vm/{slow}"]:
            yield f"{done.name}: {done.slow} are said to be slow, not vm/{slow}"
        if (off := difference(first.ledger, done.ledger)) > LEDGER or done.rows != first.rows:
            yield f"{done.name}: its ledger is off by {off:.1e}, or its rows are others"
        if done.worker_bytes > WORKER_BYTES or (done.worker_bytes and done.coordinator_bytes > COORDINATOR_BYTES):
            yield f"{done.name}: too much memory"
    if "1 worker" in walls and "2 workers" in walls and walls["1 worker"] < LEAST_RATIO * walls["2 workers"]:
        yield f"2 workers are {walls['1 worker'] / walls['2 workers']:.2f} times as fast as 1, asked is {LEAST_RATIO}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=200, help="how many, a multiple of four")
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2], help="of the clusters, one after the other")
    parser.add_argument("--kill-every", type=float, help="and once more, a worker being killed every so many seconds")
    parser.add_argument("--here", action="store_true", help="read the same in one process first")
    parser.add_argument("--check", action="store_true", help="end with 1 where something does not hold")
    parser.add_argument("--folder", type=Path, help="keep traces and stores there")
    given = parser.parse_args()
    slow = given.hosts // 3
    folder = given.folder or Path(tempfile.mkdtemp(prefix="chipledger-benchmark-"))
    measured: list[Measured] = []

    def note(done: Measured) -> None:
        measured.append(done)
        print(line(done, measured[0], slow), flush=True)

    try:
        traces = folder / f"traces-{given.hosts}"
        if not traces.exists():
            size = spread_traces.write(traces, given.hosts, slow)
            print(
                f"{given.hosts:,} traces, {size / 1e6:,.0f} MB; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
            )
        if given.here:
            note(measure("here", traces, folder, None))
        for workers in given.workers:
            with DaskCluster(folder / f"cluster-{workers}", workers) as cluster:
                note(measure(f"{workers} worker{'s' * (workers > 1)}", traces, folder, cluster))
        if given.kill_every:
            with DaskCluster(folder / "cluster-killed", 2) as cluster:
                note(measure("2 workers, killed", traces, folder, cluster, given.kill_every))
        by_name = {done.name: done for done in measured}
        if "1 worker" in by_name and "2 workers" in by_name:
            print(together(by_name["1 worker"], by_name["2 workers"]), flush=True)
        said = list(wrong(measured, slow))
        print("\n".join(said) or "all that was asked for holds")
        return int(given.check and bool(said))
    finally:
        if given.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
