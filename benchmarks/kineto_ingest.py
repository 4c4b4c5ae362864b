"""Ingest of a large trace of torch.profiler, side by side with Holistic Trace Analysis (HTA), each in its own process.

    python -m benchmarks.kineto_ingest [--runs 3] [--megabytes 215] [--hta PYTHON] [--gigabytes 5]

Compared, whole processes from start to exit:

    chipledger    `chipledger ingest`: every event with every argument into zstd Parquet tables
    hta           HTA's `TraceAnalysis` of a folder with the trace: what it needs to answer anything

and then, without what comes before, five answers: by HTA its temporal breakdown, overlap, idle causes, queue lengths
and kernels; here the questions overlap, launches, operations, collectives and steps. `--hta` names a Python that has
HolisticTraceAnalysis (0.5.0 was measured), which this project does not depend on. Ratios are of medians of runs taken
in turn; those of processor seconds are what holds on a machine that others use too. `--gigabytes` ingests one trace of
that size instead and prints its peak memory.

Measured on 28 November 2026, 2 cores that others kept busy (load 6 to 8), 188 MB with 722,362 events, medians of three
runs: HTA took 12.0 times as long to load it (62.0 s to 5.15 s), with 12.3 times the processor time (23.8 s to 1.93 s)
and 3.9 times the memory; for the answers 2.6 times as long (4.79 s to 1.85 s), with 2.3 times the processor time (1.58
s to 0.68 s). Half of that time here goes to the ledger's accounts beside `overlap`, which `launches` and `collectives`
then share; most of the rest is what pandas takes for many small tables.
"""

import argparse
import gzip
import json
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks import kineto_trace
from benchmarks.xplane_ingest import Measured, ingest, run

TIMED = """
import os, sys, time
def spent():
    return time.perf_counter(), sum(os.times()[:4])
def told(before):
    print(*(now - then for now, then in zip(spent(), before)))
"""
HTA = f"""{TIMED}
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_dir=sys.argv[1])
before = spent()
if sys.argv[2] == "answers":
    analysis.get_temporal_breakdown(visualize=False)
    analysis.get_comm_comp_overlap(visualize=False)
    analysis.get_idle_time_breakdown(ranks=[0], visualize=False)
    analysis.get_queue_length_summary(ranks=[0])
    analysis.get_gpu_kernel_breakdown(visualize=False)
told(before)
"""
OURS = f"""{TIMED}
from pathlib import Path
from app.questions import question
from app.questions.asking import ask
from runs.registry import Registry
from runs.store import Store
store = Store(Path(sys.argv[1]))
run, registry = store.runs()[0], Registry(store.root)
before = spent()
for name in ("overlap", "launches", "operations", "collectives", "steps"):
    ask(question(name), run, {{}}, registry)
told(before)
"""


COLUMNS = ("load wall s", "load cpu s", "answer wall s", "answer cpu s")


def compare(megabytes: int, runs: int, hta: str | None) -> None:
    load = os.getloadavg()
    with tempfile.TemporaryDirectory(prefix="chipledger-benchmark-") as folder:
        scratch = Path(folder)
        trace = scratch / "rank0.pt.trace.json"
        events = kineto_trace.write(trace, megabytes * 1_000_000)
        ingest(trace, scratch)  # compiled kernels and the page cache are warm for all
        taken: dict[str, list[Measured]] = {}
        answers: dict[str, list[tuple[float, float]]] = {}  # seconds of wall clock, and of processors
        packed = _packed(trace, scratch) if hta else None
        for _ in range(runs):
            taken.setdefault("chipledger", []).append(ingest(trace, scratch))
            asked = run([sys.executable, "-c", OURS, str(scratch / "store")])
            answers.setdefault("chipledger", []).append(_timed(asked))
            if packed and hta:
                taken.setdefault("hta", []).append(run([hta, "-c", HTA, str(packed), "load"]))
                asked = run([hta, "-c", HTA, str(packed), "answers"])
                answers.setdefault("hta", []).append(_timed(asked))
        print(f"trace: {trace.stat().st_size / 1e6:.1f} MB, {events:,} events")
        spent = {n: (*_medians([(m.wall_s, m.cpu_s) for m in of]), *_medians(answers[n])) for n, of in taken.items()}
        print(f"{'':12}{'peak MB':>8}" + "".join(f"{what:>13}{'/ ours':>7}" for what in COLUMNS))
        for name, seconds in spent.items():
            ratios = "".join(f"{s:13.2f}{s / o:7.2f}" for s, o in zip(seconds, spent["chipledger"], strict=True))
            print(f"{name:12}{max(m.peak_bytes for m in taken[name]) / 1e6:8.0f}{ratios}")
        print(f"load of the machine {load[0]:.1f} before, {os.getloadavg()[0]:.1f} after, {os.cpu_count()} cores")


def _timed(asked: Measured) -> tuple[float, float]:
    """Seconds of wall clock and of processors, as TIMED tells them."""
    wall, cpu = asked.output.split()[-2:]
    return float(wall), float(cpu)


def _medians(pairs: list[tuple[float, float]]) -> tuple[float, ...]:
    return tuple(map(statistics.median, zip(*pairs, strict=True)))


def _packed(trace: Path, scratch: Path) -> Path:
    """A folder with the trace as HTA expects it: compressed."""
    folder = scratch / "hta"
    folder.mkdir()
    with trace.open("rb") as f, gzip.open(folder / "rank0.json.gz", "wb", compresslevel=1) as out:
        shutil.copyfileobj(f, out)
    return folder


def large(gigabytes: float) -> None:
    with tempfile.TemporaryDirectory(prefix="chipledger-benchmark-") as folder:
        trace = Path(folder) / "rank0.pt.trace.json"
        events = kineto_trace.write(trace, int(gigabytes * 1e9))
        done = ingest(trace, Path(folder))
        tables = json.loads(done.output)["tables"]
        print(f"trace: {trace.stat().st_size / 1e9:.2f} GB, {events:,} events, {tables['launches']:,} launches")
        print(f"chipledger   {done.wall_s:.1f} s wall, {done.cpu_s:.1f} s cpu, {done.peak_bytes / 1e6:.0f} MB peak")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="measured runs of each, taken in turn")
    parser.add_argument("--megabytes", type=int, default=215, help="least size of the trace")
    parser.add_argument("--hta", help="a Python that has HolisticTraceAnalysis")
    parser.add_argument("--gigabytes", type=float, help="ingest one trace of this size and print its peak memory")
    given = parser.parse_args()
    if given.gigabytes:
        large(given.gigabytes)
    else:
        compare(given.megabytes, given.runs, given.hta)


if __name__ == "__main__":
    main()
