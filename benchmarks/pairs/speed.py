"""How long it takes to compare two traces of three million events: a process from start to exit, and the answer again.

Each trace is a window that a process of the bundled reference run recorded, laid end to end until it has so many
events: times and step numbers go on from copy to copy. Reading the files in is no part of it (`xplane_ingest`).
"""

import gzip
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.xplane_ingest import TRACES, run
from benchmarks.xspace import XSpace

EVENTS = 3_000_000
WINDOWS = ("attempt_0/window_0", "attempt_2/window_0")
AGAIN = """
import sys, time
from app.comparing.answer import Compared
from app.workspace import workspace
place = workspace(sys.argv[1])
a, b = (place.store.find(name) for name in "ab")
for _ in range(2):
    begun = time.perf_counter()
    Compared(a, b, place)
    print(time.perf_counter() - begun)
"""


def timed() -> str:
    """A sentence with the times."""
    with tempfile.TemporaryDirectory(prefix="pairs-") as scratch:
        folder, counts = Path(scratch), []
        store = f"--store={folder / 'store'}"
        for name, window in zip("ab", WINDOWS, strict=True):
            trace = folder / name / "process_0" / "vm.xplane.pb"  # the folder says whose it is
            trace.parent.mkdir(parents=True)
            counts.append(write(trace, window, EVENTS))
            _say(folder / name)
            run([sys.executable, "-m", "app.cli", "ingest", str(folder / name), "--name", name, store])
            trace.unlink()
        load = os.getloadavg()[0]
        cold = run([sys.executable, "-m", "app.cli", "compare", "a", "b", store, "--json"])
        again = [float(s) for s in run([sys.executable, "-c", AGAIN, str(folder / "store")]).output.split()]
    verdict = json.loads(cold.output)["verdict"]
    return (
        f"{counts[0]:,} and {counts[1]:,} events: {cold.wall_s:.1f} s from start to exit ({cold.cpu_s:.1f} s of "
        f"processor, {cold.peak_bytes / 1e6:.0f} MB at most); in a process that runs {again[0]:.1f} s, asked again "
        f"{1e3 * again[1]:.1f} ms; load {load:.1f}\n{verdict}"
    )


def write(path: Path, window: str, at_least: int) -> int:
    """So many events, from copies of one window; how many they are."""
    (source,) = (TRACES / window / "process_0").glob("*.xplane.pb.gz")
    space = XSpace.FromString(gzip.decompress(source.read_bytes()))
    span, steps = _extent(space)
    events = sum(len(line.events) for plane in space.planes for line in plane.lines)
    copies = -(-at_least // events)
    _end_later(space, copies * span)
    with path.open("wb") as f:
        for _ in range(copies):
            f.write(space.SerializeToString())
            _move(space, span, steps)
    return copies * events


def _numbers(plane):
    """Ids of the stats that number steps."""
    return {e.key for e in plane.stat_metadata if e.value.name == b"step_num"}


def _extent(space) -> tuple[int, int]:
    """(nanoseconds, steps) that a window takes."""
    last = first = 0
    seen: list[int] = []
    for plane in space.planes:
        known = _numbers(plane)
        for line in plane.lines:
            for event in line.events:
                last = max(last, line.timestamp_ns + (event.offset_ps + event.duration_ps) // 1000)
                seen += [s.int64_value or s.uint64_value for s in event.stats if s.metadata_id in known]
    return last - first + 1000, (max(seen) - min(seen) + 1 if seen else 0)


def _end_later(space, ns: int) -> None:
    """The profile as one that was stopped so much later."""
    for plane in space.planes:
        stops = {e.key for e in plane.stat_metadata if e.value.name == b"profile_stop_time"}
        for stat in plane.stats:
            if stat.metadata_id in stops:
                field = "uint64_value" if stat.uint64_value else "int64_value"
                setattr(stat, field, getattr(stat, field) + ns)


def _move(space, ns: int, steps: int) -> None:
    for plane in space.planes:
        known = _numbers(plane)
        for line in plane.lines:
            line.timestamp_ns += ns
            for event in line.events if known else ():
                for stat in event.stats:
                    if stat.metadata_id in known:
                        field = "uint64_value" if stat.uint64_value else "int64_value"
                        setattr(stat, field, getattr(stat, field) + steps)


def _say(folder: Path) -> None:
    begun = time.strftime("%Y-%m-%d")
    facts = {"chip": "cpu-process", "chips": 1, "peak_flops_per_s": 1e11, "peak_basis": f"made up, {begun}"}
    (folder / "chipledger.json").write_text(json.dumps(facts))
