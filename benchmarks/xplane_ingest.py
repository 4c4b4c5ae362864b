"""Ingest of a large XPlane trace, side by side with what else reads one, each in a process of its own.

    python -m benchmarks.xplane_ingest [--runs 3] [--megabytes 215] [--no-xprof] [--check] [--gigabytes 4]

The trace is what one process of the bundled reference run recorded, window after window, again and again, until it is
large enough (215 MB hold 2.8 million events): concatenated protobuf messages are one message. Compared, whole processes
from start to exit:

    chipledger    `chipledger ingest`: hash, decode with every stat, analyse the HLO, write all tables as zstd Parquet
    protobuf      ParseFromString by protobuf's C runtime, then a loop over all events, without their stats
    xprof         XProf's first trace view of the file (`trace_viewer@`), as a call

Ratios are of medians of runs taken in turn. `--check` ends with 1 where one is below what FLOORS holds: a release does
not ship slower than the one before. `--gigabytes` ingests one trace of that size instead and prints its peak
memory. Wall-clock times differ from machine to machine; the ratios are what is claimed.
"""

import argparse
import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TRACES = ROOT / "reference" / "runs" / "training" / "profiles"
FLOORS = {
    "protobuf": 1.27,
    "xprof": 13.2,
}  # just below 1.33 to 1.35 and 13.76 to 14.16, measured last; to be raised with them

# What was installed has its bytecode beside it, and so has a checkout that was run once, unless Python is told not to.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

PROTOBUF = """
import sys
from benchmarks.xspace import XSpace
space = XSpace()
with open(sys.argv[1], "rb") as f:
    space.ParseFromString(f.read())
events = total_ps = 0
for plane in space.planes:
    for line in plane.lines:
        for event in line.events:
            events += 1
            total_ps += event.duration_ps
print(events)
"""

XPROF = """
import sys
from xprof.convert import raw_to_tool_data
data, _ = raw_to_tool_data.xspace_to_tool_data([sys.argv[1]], "trace_viewer@", {"host": "vm"})
assert data, "XProf returned nothing"
print(len(data))
"""


@dataclass(frozen=True)
class Measured:
    """One finished process: seconds of wall clock and of processor, peak resident bytes, what it printed."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    output: str


def run(command: list[str]) -> Measured:
    """Run to the end and read the kernel's own account. Raises RuntimeError where it fails."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start = time.perf_counter()
        process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=err, env=ENVIRONMENT)
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode:
            raise RuntimeError(f"{' '.join(command[:4])} ... ended with {process.returncode}:\n{err.read()[-2000:]}")
        return Measured(wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, out.read())


def write_trace(path: Path, at_least_bytes: int) -> int:
    """Concatenate the reference traces into `path` until it is large enough; returns its bytes."""
    parts = [gzip.decompress(p.read_bytes()) for p in sorted(TRACES.rglob("process_0/*.xplane.pb.gz"))]
    written = 0
    with path.open("wb") as f:
        for part in forever(parts):
            written += f.write(part)
            if written >= at_least_bytes:
                return written


def forever(parts: list[bytes]) -> Iterator[bytes]:
    while True:
        yield from parts


def ingest(trace: Path, scratch: Path) -> Measured:
    store = scratch / "store"
    shutil.rmtree(store, ignore_errors=True)
    return run([sys.executable, "-m", "app.cli", "ingest", str(trace), f"--store={store}", "--json"])


def protobuf(trace: Path, scratch: Path) -> Measured:
    return run([sys.executable, "-c", PROTOBUF, str(trace)])


def xprof(trace: Path, scratch: Path) -> Measured:
    """XProf writes caches beside its input, so each first view has a folder of its own."""
    folder = scratch / "xprof"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    os.link(trace, folder / "vm.xplane.pb")
    return run([sys.executable, "-c", XPROF, str(folder / "vm.xplane.pb")])


def compare(megabytes: int, runs: int, with_xprof: bool) -> dict[str, float]:
    """Measure, and print; how many times as long as ours each of the others takes."""
    peers: dict[str, Callable[[Path, Path], Measured]] = {"chipledger": ingest, "protobuf": protobuf}
    if with_xprof:
        peers["xprof"] = xprof
    load = os.getloadavg()
    with tempfile.TemporaryDirectory(prefix="chipledger-benchmark-") as folder:
        scratch = Path(folder)
        trace = scratch / "vm.xplane.pb"
        size = write_trace(trace, megabytes * 1_000_000)
        ingest(trace, scratch)  # compiled kernels and the page cache are warm for all
        taken: dict[str, list[Measured]] = {name: [] for name in peers}
        for _ in range(runs):
            for name, measure in peers.items():
                taken[name].append(measure(trace, scratch))
        tables = json.loads(taken["chipledger"][0].output)["tables"]
        print(f"trace: {size / 1e6:.1f} MB, {tables['op_events']:,} events, {tables['event_stats']:,} stats on events")
        print(f"protobuf counted {int(taken['protobuf'][0].output):,} events")
        base, ratios = statistics.median(m.wall_s for m in taken["chipledger"]), dict[str, float]()
        print(f"{'':12}{'wall s':>9}{'min':>8}{'max':>8}{'cpu s':>8}{'peak MB':>9}{'wall / chipledger':>19}")
        for name, all_runs in taken.items():
            walls = sorted(m.wall_s for m in all_runs)
            wall = statistics.median(walls)
            cpu = statistics.median(m.cpu_s for m in all_runs)
            peak = max(m.peak_bytes for m in all_runs) / 1e6
            ratios[name] = wall / base
            print(f"{name:12}{wall:9.2f}{walls[0]:8.2f}{walls[-1]:8.2f}{cpu:8.2f}{peak:9.0f}{wall / base:19.2f}")
        print(f"load of the machine {load[0]:.1f} before, {os.getloadavg()[0]:.1f} after, {os.cpu_count()} cores")
        return ratios


def below(ratios: Mapping[str, float]) -> list[str]:
    """What is said of each ratio that is below its floor."""
    return [
        f"{name} takes {ratios[name]:.2f} times as long as chipledger; it is to be {floor} or more"
        for name, floor in FLOORS.items()
        if name in ratios and ratios[name] < floor
    ]


def large(gigabytes: float) -> None:
    with tempfile.TemporaryDirectory(prefix="chipledger-benchmark-") as folder:
        scratch = Path(folder)
        trace = scratch / "vm.xplane.pb"
        size = write_trace(trace, int(gigabytes * 1e9))
        done = ingest(trace, scratch)
        tables = json.loads(done.output)["tables"]
        print(f"trace: {size / 1e9:.2f} GB, {tables['op_events']:,} events, {tables['event_stats']:,} stats on events")
        print(f"chipledger   {done.wall_s:.1f} s wall, {done.cpu_s:.1f} s cpu, {done.peak_bytes / 1e6:.0f} MB peak")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="measured runs of each, taken in turn")
    parser.add_argument("--megabytes", type=int, default=215, help="least size of the trace")
    parser.add_argument("--no-xprof", action="store_true", help="leave XProf out")
    parser.add_argument("--check", action="store_true", help="end with 1 where a ratio is below its floor")
    parser.add_argument("--gigabytes", type=float, help="ingest one trace of this size and print its peak memory")
    given = parser.parse_args()
    if given.gigabytes:
        large(given.gigabytes)
        return 0
    said = below(compare(given.megabytes, given.runs, not given.no_xprof))
    print("\n".join(said))
    return int(given.check and bool(said))


if __name__ == "__main__":
    sys.exit(main())
