"""Ingest of a large trace of torch.profiler, side by side with Holistic Trace Analysis (HTA), each in its own process.

    python -m benchmarks.kineto_ingest [--runs 3] [--megabytes 215] [--hta PYTHON] [--gigabytes 5] [--ranks 64]

Compared, whole processes from start to exit:

    chipledger    `chipledger ingest`: every event with every argument into zstd Parquet tables
    hta           HTA's `TraceAnalysis` of a folder with the trace: what it needs to answer anything

and then, with what was loaded in memory on both sides and all code imported, HTA's five answers, each by itself:
temporal breakdown, overlap, idle causes, queue lengths and kernels; here `benchmarks.kineto_answers`, which has the
columns of HTA's frames. What a page asks instead is told beside it, under `as asked`: the questions overlap, launches,
operations, collectives and steps, which hold the five, from the files, with the ledger and all else that they tell.
`--hta` names a Python that has HolisticTraceAnalysis (0.5.0 was measured), which this project does not depend on.
Ratios are of medians of runs taken in turn; those of processor seconds are what holds on a machine that others use
too. `--gigabytes` ingests one trace of that size instead and prints its peak memory; `--ranks` a folder of so many
traces of `--megabytes` each, by one process and by as many as there are processors, and what each held at its peak.

Measured on 29 November 2026, 2 quiet cores, 188 MB with 722,362 events, medians of three runs: HTA took 14.4 times as
long to load it (45.0 s to 3.11 s), with 12.1 times the processor time and 4.2 times the memory. Its five answers took
25.3 times as long as here (3.58 s to 141 ms), with 25.5 times the processor time. As a page asks, from the files, it
took 4.6 times as long (770 ms): that is the ledger's accounts beside `overlap`, and what pandas takes for many small
tables. What several answers share is worked out by the one that asks first: the idle causes by themselves take about
as long as HTA's. On cores that others kept busy, the same day, it was 14.3 times the processor time to load, and 16.9
to 22.6 times that of the answers.

64 ranks of 102 MB each, 25.0 million events: 103.3 s by one processor, whose process held 302 MB at most, and 49.4 s by
two, of which each held 314 and 301 MB. One trace of 5.00 GB, 18.9 million events: 71.9 s, 794 MB at most.
"""

import argparse
import contextlib
import gzip
import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from benchmarks import kineto_trace
from benchmarks.dask_cluster import peak_bytes
from benchmarks.xplane_ingest import Measured, ingest, run

TIMED = """
import sys, time
def timed(name, call):
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    print("TIMED", name, time.perf_counter() - wall, time.process_time() - cpu)
"""
HTA = f"""{TIMED}
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_dir=sys.argv[1])
if sys.argv[2] == "answers":
    timed("temporal_breakdown", lambda: analysis.get_temporal_breakdown(visualize=False))
    timed("comm_comp_overlap", lambda: analysis.get_comm_comp_overlap(visualize=False))
    timed("idle_time_breakdown", lambda: analysis.get_idle_time_breakdown(ranks=[0], visualize=False))
    timed("queue_length_summary", lambda: analysis.get_queue_length_summary(ranks=[0]))
    timed("gpu_kernel_breakdown", lambda: analysis.get_gpu_kernel_breakdown(visualize=False))
"""
OURS = f"""{TIMED}
from pathlib import Path
from benchmarks.kineto_answers import FIVE, TABLES
from runs.store import Store
tables = Store(Path(sys.argv[1])).runs()[0].tables
for name in TABLES:
    tables.arrow(name)  # is held from then on
for answer in FIVE:
    timed(answer.__name__, lambda: answer(tables))
"""
ASKED = f"""{TIMED}
from pathlib import Path
from app.questions import question
from app.questions.asking import ask
from runs.registry import Registry
from runs.store import Store
store = Store(Path(sys.argv[1]))
run, registry = store.runs()[0], Registry(store.root)
for name in ("overlap", "launches", "operations", "collectives", "steps"):
    timed(name, lambda: ask(question(name), run, {{}}, registry))
"""
Seconds = dict[str, tuple[float, float]]  # of wall clock and of processors, by answer
ALL = "all five"
LOADED = ("load wall s", "load cpu s")


def compare(megabytes: int, runs: int, hta: str | None) -> None:
    load = os.getloadavg()
    with tempfile.TemporaryDirectory(prefix="chipledger-benchmark-") as folder:
        scratch = Path(folder)
        trace = scratch / "rank0.pt.trace.json"
        events = kineto_trace.write(trace, megabytes * 1_000_000)
        ingest(trace, scratch)  # compiled kernels and the page cache are warm for all
        taken: dict[str, list[Measured]] = {}
        answers: dict[str, list[Seconds]] = {}
        packed = _packed(trace, scratch) if hta else None
        for _ in range(runs):
            taken.setdefault("chipledger", []).append(ingest(trace, scratch))
            for name, script in (("chipledger", OURS), ("as asked", ASKED)):
                answers.setdefault(name, []).append(_timed(run([sys.executable, "-c", script, str(scratch / "store")])))
            if packed and hta:
                taken.setdefault("hta", []).append(run([hta, "-c", HTA, str(packed), "load"]))
                answers.setdefault("hta", []).append(_timed(run([hta, "-c", HTA, str(packed), "answers"])))
        print(f"trace: {trace.stat().st_size / 1e6:.1f} MB, {events:,} events")
        _print_loading(taken)
        _print_answers(answers)
        print(f"load of the machine {load[0]:.1f} before, {os.getloadavg()[0]:.1f} after, {os.cpu_count()} cores")


def _print_loading(taken: dict[str, list[Measured]]) -> None:
    spent = {name: _medians([(m.wall_s, m.cpu_s) for m in of]) for name, of in taken.items()}
    print(f"{'':12}{'peak MB':>8}" + "".join(f"{what:>13}{'/ ours':>7}" for what in LOADED))
    for name, seconds in spent.items():
        ratios = "".join(f"{s:13.2f}{s / o:7.2f}" for s, o in zip(seconds, spent["chipledger"], strict=True))
        print(f"{name:12}{max(m.peak_bytes for m in taken[name]) / 1e6:8.0f}{ratios}")


def _print_answers(answers: dict[str, list[Seconds]]) -> None:
    """Each answer, and all of them; of HTA's also how many times as long they took."""
    found = {name: medians_of(of) for name, of in answers.items()}
    for name, of in found.items():
        print(f"{name:28}{'wall ms':>10}{'cpu ms':>10}")
        for answer, spent in of.items():
            beside = _ratios(spent, found["chipledger"][answer], "ours") if name == "hta" else ""
            beside += _ratios(spent, found["as asked"][ALL], "as asked") if name == "hta" and answer == ALL else ""
            print(f"    {answer:24}{1e3 * spent[0]:10.1f}{1e3 * spent[1]:10.1f}{beside}")


def _ratios(theirs: tuple[float, float], ours: tuple[float, float], whose: str) -> str:
    wall, cpu = (t / o for t, o in zip(theirs, ours, strict=True))
    return f"   {wall:.1f} and {cpu:.1f} times {whose}"


def _timed(asked: Measured) -> Seconds:
    """Seconds of wall clock and of processors of each answer, as TIMED tells them."""
    told = [line.split()[1:] for line in asked.output.splitlines() if line.startswith("TIMED ")]
    return {name: (float(wall), float(cpu)) for name, wall, cpu in told}


def medians_of(rounds: list[Seconds]) -> Seconds:
    """The medians over rounds of each answer, and of all together."""
    whole = [{**one, ALL: (sum(w for w, _ in one.values()), sum(c for _, c in one.values()))} for one in rounds]
    return {name: _medians([one[name] for one in whole]) for name in whole[0]}


def _medians(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    wall, cpu = zip(*pairs, strict=True)
    return statistics.median(wall), statistics.median(cpu)


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


def many(ranks: int, megabytes: int) -> None:
    """A folder of traces, of each of so many ranks one, by one processor and by all; what each process held at most."""
    with tempfile.TemporaryDirectory(prefix="chipledger-benchmark-") as folder:
        scratch, traces = Path(folder), Path(folder) / "traces"
        traces.mkdir()
        events = kineto_trace.write(scratch / "one.json", megabytes * 1_000_000)
        for rank in range(ranks):
            kineto_trace.of_rank(scratch / "one.json", rank, ranks, traces / f"rank{rank}.pt.trace.json")
        ingest(traces / "rank0.pt.trace.json", scratch)  # compiled kernels are warm
        print(
            f"{ranks} traces of {(traces / 'rank0.pt.trace.json').stat().st_size / 1e6:.0f} MB, {events:,} events each"
        )
        mine = sorted(os.sched_getaffinity(0))
        for some in ([mine[0]], mine):
            os.sched_setaffinity(0, some)
            held: dict[int, int] = {}
            watched = threading.Event()
            watcher = threading.Thread(target=_watch, args=(held, watched), daemon=True)
            watcher.start()
            done = ingest(traces, scratch)
            watched.set()
            watcher.join()
            peaks = ", ".join(f"{peak / 1e6:.0f}" for peak in sorted(held.values(), reverse=True)[:4])
            print(
                f"{len(some)} processors: {done.wall_s:.1f} s wall, {done.cpu_s:.1f} s cpu; the largest of "
                f"{len(held)} processes held {peaks} MB"
            )


def _watch(held: dict[int, int], ended: threading.Event) -> None:
    """Notes the most that each process below this one has held, until it is told that they ended."""
    while not ended.wait(0.1):
        for pid in _below(os.getpid()):
            held[pid] = max(held.get(pid, 0), peak_bytes(pid))


def _below(pid: int) -> Iterator[int]:
    """The children of a process, and theirs."""
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, thread.read_text().split()):
                yield child
                yield from _below(child)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="measured runs of each, taken in turn")
    parser.add_argument("--megabytes", type=int, default=215, help="least size of the trace")
    parser.add_argument("--hta", help="a Python that has HolisticTraceAnalysis")
    parser.add_argument("--gigabytes", type=float, help="ingest one trace of this size and print its peak memory")
    parser.add_argument("--ranks", type=int, help="ingest so many traces of `--megabytes` each, and print what is held")
    given = parser.parse_args()
    if given.gigabytes:
        large(given.gigabytes)
    elif given.ranks:
        many(given.ranks, given.megabytes)
    else:
        compare(given.megabytes, given.runs, given.hta)


if __name__ == "__main__":
    main()
