"""Ingest of a large trace of torch.profiler, side by side with Holistic Trace Analysis (HTA), each in its own process.

    python -m benchmarks.kineto_ingest [--runs 3] [--megabytes 215] [--hta PYTHON] [--gigabytes 5]

Compared, whole processes from start to exit:

    chipledger    `chipledger ingest`: every event with every argument into zstd Parquet tables
    hta           HTA's `TraceAnalysis` of a folder with the trace: what it needs to answer anything

and then, without what comes before, five answers: by HTA its temporal breakdown, overlap, idle causes, queue lengths
and kernels; here the questions overlap, launches, operations, collectives and steps. `--hta` names a Python that has
HolisticTraceAnalysis (0.5.0 was measured), which this project does not depend on. Ratios are of medians of runs taken
in turn. `--gigabytes` ingests one trace of that size instead and prints its peak memory.
"""

import argparse
import gzip
import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks import kineto_trace
from benchmarks.xplane_ingest import Measured, ingest, run

HTA = """
import sys, time
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_dir=sys.argv[1])
start = time.perf_counter()
if sys.argv[2] == "answers":
    analysis.get_temporal_breakdown(visualize=False)
    analysis.get_comm_comp_overlap(visualize=False)
    analysis.get_idle_time_breakdown(ranks=[0], visualize=False)
    analysis.get_queue_length_summary(ranks=[0])
    analysis.get_gpu_kernel_breakdown(visualize=False)
print(time.perf_counter() - start)
"""
OURS = """
import sys, time
from pathlib import Path
from app.questions import question
from app.questions.asking import ask
from runs.registry import Registry
from runs.store import Store
store = Store(Path(sys.argv[1]))
run, registry = store.runs()[0], Registry(store.root)
start = time.perf_counter()
for name in ("overlap", "launches", "operations", "collectives", "steps"):
    ask(question(name), run, {}, registry)
print(time.perf_counter() - start)
"""


def compare(megabytes: int, runs: int, hta: str | None) -> None:
    with tempfile.TemporaryDirectory(prefix="chipledger-benchmark-") as folder:
        scratch = Path(folder)
        trace = scratch / "rank0.pt.trace.json"
        events = kineto_trace.write(trace, megabytes * 1_000_000)
        ingest(trace, scratch)  # compiled kernels and the page cache are warm for all
        taken: dict[str, list[Measured]] = {}
        answers: dict[str, list[float]] = {}
        packed = _packed(trace, scratch) if hta else None
        for _ in range(runs):
            taken.setdefault("chipledger", []).append(ingest(trace, scratch))
            asked = run([sys.executable, "-c", OURS, str(scratch / "store")])
            answers.setdefault("chipledger", []).append(float(asked.output.split()[-1]))
            if packed and hta:
                taken.setdefault("hta", []).append(run([hta, "-c", HTA, str(packed), "load"]))
                asked = run([hta, "-c", HTA, str(packed), "answers"])
                answers.setdefault("hta", []).append(float(asked.output.split()[-1]))
        print(f"trace: {trace.stat().st_size / 1e6:.1f} MB, {events:,} events")
        base = statistics.median(m.wall_s for m in taken["chipledger"])
        asking = statistics.median(answers["chipledger"])
        print(f"{'':12}{'wall s':>9}{'cpu s':>8}{'peak MB':>9}{'/ ours':>8}{'answers s':>11}{'/ ours':>8}")
        for name, measured in taken.items():
            wall, cpu = (statistics.median(getattr(m, f) for m in measured) for f in ("wall_s", "cpu_s"))
            peak, told = max(m.peak_bytes for m in measured) / 1e6, statistics.median(answers[name])
            print(f"{name:12}{wall:9.2f}{cpu:8.2f}{peak:9.0f}{wall / base:8.2f}{told:11.2f}{told / asking:8.2f}")


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
