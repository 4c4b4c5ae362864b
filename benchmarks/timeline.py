"""The timeline of runs with many events: how long it takes to make, to open and to look into, and in what memory.

    python -m benchmarks.timeline [--events 1000000,10000000,50000000] [--store FOLDER] [--zooms 300] [--devices 16]
    python -m benchmarks.timeline --keep FOLDER --events 1000000 --devices 1024

Each run is made: 16 devices (or as many as asked, 16 a host) with two lines each, loops that hold nine operations on
one, copies on the other. It is written by the store's own writer. Measured, each in a process of its own and with the
files in the page cache:

    make      from the question to its answer where nothing of it is kept yet, and the most memory of its own meanwhile
    open      from the question to its answer where it is kept
    zoom      marks of a window at a random place, from all of the run to a millionth of it, found and packed: 40 rows,
              1,400 pixels; median, 95th of 100, and bytes
    memory    resident bytes that opening and all zooms added: its own, and pages of files, which the kernel may take

and bytes of an event in the run's table and in what is kept. Machine's load before and after.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from runs.derived import FOLDER
from runs.run import Run, facts_of
from runs.schema import SCHEMAS
from runs.store import Store

EACH, KINDS, INSIDE, PIECE = 16, 200, 9, 1 << 19  # EACH: devices of a host
BEGAN_NS = 1_760_000_000_000_000_000
ROWS, PIXELS = 40, 1_400
CATEGORIES = ("matmul", "elementwise", "collective", "copy", "reduction")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", default="1000000,10000000,50000000")
    parser.add_argument("--store", type=Path)
    parser.add_argument("--zooms", type=int, default=300)
    parser.add_argument("--devices", type=int, default=EACH)
    parser.add_argument("--keep", type=Path, help="only make the runs, in this store, for benchmarks.timeline_browser")
    parser.add_argument("--only", choices=("make", "look"), help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.only:
        print(json.dumps(_timed(asked.store, asked.only, asked.zooms)))
        return
    for text in asked.events.split(","):
        if asked.keep:
            print(make(Store(asked.keep), int(text), asked.devices).manifest.name)
            continue
        with tempfile.TemporaryDirectory(dir=asked.store) as folder:
            for line in measured(Path(folder), int(text), asked.zooms, asked.devices):
                print(line, flush=True)


def measured(folder: Path, events: int, zooms: int, devices: int = EACH) -> list[str]:
    """What is measured of a run with so many events, a line each."""
    load, run = os.getloadavg()[0], make(Store(folder), events, devices)
    made, looked = _asked(folder, "make", zooms), _asked(folder, "look", zooms)
    table = (run.folder / "tables/op_events.parquet").stat().st_size
    kept = sum(p.stat().st_size for p in (folder / FOLDER).rglob("*") if p.is_file())
    return [
        f"{events:,} events, {looked['shown']:,} shown in {looked['rows']:,} rows",
        f"  make    {made['s']:.1f} s, at most {made['most'] / 2**20:,.0f} MiB of its own",
        f"  open    {looked['s']:.2f} s",
        f"  zoom    median {looked['p50_ms']:.1f} ms, 95th {looked['p95_ms']:.1f}, worst {looked['worst_ms']:.1f}",
        f"  bytes   median {looked['p50_bytes']:,.0f} a view, worst {looked['worst_bytes']:,.0f}, not compressed",
        f"  memory  {looked['own'] / 2**20:,.0f} MiB of its own, {looked['files'] / 2**20:,.0f} MiB of files' pages",
        f"  disk    {table / events:.1f} bytes an event in the table, {kept / events:.1f} in what is kept",
        f"  load    {load:.1f} before, {os.getloadavg()[0]:.1f} after, {os.cpu_count()} cores",
    ]


def make(store: Store, events: int, devices: int = EACH) -> Run:
    """A run with about so many events, each host of 16 devices with a capture of its own."""
    rng = np.random.default_rng(events)
    with store.writer() as writer:
        hosts = -(-devices // EACH)
        captures = {"capture": list(range(hosts)), "host": [f"host {n}" for n in range(hosts)]}
        writer.rows("captures", SCHEMAS["captures"].batch({**captures, "start_ns": [BEGAN_NS] * hosts}))
        for host in range(hosts):
            writer.rows("ops", SCHEMAS["ops"].batch(_operations(host, min(devices - host * EACH, EACH))))
        number = 0
        for place in range(devices):
            host, device = divmod(place, EACH)
            for line in range(2):
                left, now = events // (2 * devices), 0
                while left > 0:
                    op, start, dur, now = (_loops if line == 0 else _copies)(rng, min(left, PIECE), now)
                    rows = {"capture": np.full(len(op), host), "event": np.arange(number, number + len(op))}
                    rows |= {"device": np.full(len(op), device), "op_id": op + 2 * KINDS * device, "start_ps": start}
                    writer.rows("op_events", SCHEMAS["op_events"].batch({**rows, "dur_ps": dur}))
                    number, left = number + len(op), left - len(op)
        return writer.commit(
            run_id=f"made-{events}-{devices}",
            name=f"{events:,} events on {devices:,} devices",
            kind="training",
            facts=facts_of({}),
            sources=[],
        )


def _operations(host: int, devices: int) -> dict[str, list[Any]]:
    """200 kinds of each line of each device of a host."""
    every = [(d, line, n) for d in range(devices) for line in range(2) for n in range(KINDS)]
    return {
        "capture": [host] * len(every),
        "op_id": [(2 * d + line) * KINDS + n for d, line, n in every],
        "host": [f"host {host}"] * len(every),
        "device": [d for d, _, _ in every],
        "line": ["Async XLA Ops" if line else "XLA Ops" for _, line, _ in every],
        "role": ["async" if line else "compute" for _, line, _ in every],
        "op": [f"copy.{n}" if line else f"fusion.{n}" for _, line, n in every],
        "category": ["copy" if line else CATEGORIES[n % len(CATEGORIES)] for _, line, n in every],
    }


def _loops(rng: np.random.Generator, count: int, now: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """(operation, start, duration, end of the last) of loops of nine operations each."""
    loops = max(count // (INSIDE + 1), 1)
    inside = rng.lognormal(15.5, 1.0, (loops, INSIDE)).astype(np.int64)  # some 5 us
    gaps = rng.lognormal(12.0, 1.5, (loops, INSIDE + 1)).astype(np.int64)
    whole = inside.sum(axis=1) + gaps[:, :INSIDE].sum(axis=1)
    begins = now + np.cumsum(whole + gaps[:, INSIDE]) - whole
    starts = begins[:, None] + np.cumsum(gaps[:, :INSIDE] + inside, axis=1) - inside
    op = np.column_stack([np.zeros(loops, np.int64), rng.integers(1, KINDS, (loops, INSIDE))])
    start, dur = np.column_stack([begins, starts]), np.column_stack([whole, inside])
    return op.ravel(), start.ravel(), dur.ravel(), int((begins + whole)[-1])


def _copies(rng: np.random.Generator, count: int, now: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    dur, gaps = (rng.lognormal(mean, 1.2, count).astype(np.int64) for mean in (14.5, 15.0))
    start = now + np.cumsum(gaps + dur) - dur
    return KINDS + rng.integers(0, KINDS, count), start, dur, int(start[-1] + dur[-1])


def _asked(folder: Path, what: str, zooms: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.timeline", "--store", str(folder), "--only", what]
    told = subprocess.run([*command, "--zooms", str(zooms)], capture_output=True, text=True, check=True)
    return json.loads(told.stdout)


def _timed(folder: Path, what: str, zooms: int) -> dict[str, float]:
    from analyzers.timeline import timeline
    from analyzers.timeline.warm import warm

    warm()
    [run] = Store(folder).runs()
    with Most() as most:
        own, files = resident()
        began = time.perf_counter()
        of = timeline(run.tables, run.manifest.facts)
        told: dict[str, float] = {"s": time.perf_counter() - began, "shown": of.events, "rows": of.tiles.rows}
    if what == "make":
        return {**told, "most": most.own - own}
    told |= _zooms(of, zooms)
    now = resident()
    return {**told, "own": now[0] - own, "files": now[1] - files}


def _zooms(of: Any, zooms: int) -> dict[str, float]:
    from analyzers.timeline.window import window
    from app.timeline.packing import packed

    rng, seconds, sizes = np.random.default_rng(1), [], []
    for n in range(zooms):
        wide = int(of.span * 10.0 ** -(6 * rng.random())) if n else of.span
        start = int(rng.integers(0, of.span - wide + 1))
        first = int(rng.integers(0, max(of.tiles.rows - ROWS, 0) + 1))
        rows = np.arange(first, min(first + ROWS, of.tiles.rows))
        began = time.perf_counter()
        body = packed(of, window(of.tiles, rows, start, start + wide, PIXELS), start, start + wide, PIXELS)
        seconds.append(time.perf_counter() - began)
        sizes.append(len(body))
    p50, p95 = np.quantile(seconds, [0.5, 0.95]) * 1e3
    return {
        "p50_ms": p50,
        "p95_ms": p95,
        "worst_ms": 1e3 * max(seconds),
        "p50_bytes": float(np.median(sizes)),
        "worst_bytes": max(sizes),
    }


def resident() -> tuple[int, int]:
    """(bytes of its own, pages of files) that this process holds in memory."""
    told = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    own, files = (int(told[name].split()[0]) * 1024 for name in ("RssAnon", "RssFile"))
    return own, files


class Most:
    """Looks every 20 ms how much memory of its own the process holds."""

    def __enter__(self) -> "Most":
        self.own, self._stop = 0, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def _look(self) -> None:
        while not self._stop.wait(0.02):
            self.own = max(self.own, resident()[0])

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


if __name__ == "__main__":
    main(sys.argv[1:])
