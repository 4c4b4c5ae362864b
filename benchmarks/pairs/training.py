"""Runs the training jobs of a pair: A, its twin C and B in turn, again and again, so that the machine's drift hits all
alike; and what their own clocks say."""

import gzip
import json
import os
import shutil
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.diagnosis.make import Bench
from benchmarks.diagnosis.nursery import Child
from benchmarks.diagnosis.training.launch import WIRE
from benchmarks.pairs.jobs import PROFILED, Change, Job
from reference.train.facts import job_facts
from reference.train.launch import free_port

WORKER = "benchmarks.pairs.worker"
LIMIT_S = 180.0
SKIP = PROFILED[1] + 1  # the first steps by the clocks: compiling, and what the profiler slows


def make(bench: Bench, change: Change, name: str, take: int) -> None:
    """A take of a pair below `pairs/`, with what the clocks say in `truth/`."""
    folder, told = bench.out / "pairs" / f"{name}-{take}", bench.out / "truth" / f"{name}-{take}.json"
    if told.exists():
        return
    peak = bench.peak(change.a.processes)
    for job in (change.a, change.b):
        _warm(bench, job)
    begun, load = time.monotonic(), os.getloadavg()[0]
    sides = "abc" if take % 2 else "cba"  # what runs first is not always the same
    jobs = {"a": change.a, "b": change.b, "c": change.a}
    with tempfile.TemporaryDirectory(prefix="pairs-") as scratch:
        clocks = run(bench, {side: jobs[side] for side in sides}, Path(scratch), folder, peak)
    said = {"family": "training", "kind": change.kind, "take": take, "accounts": change.accounts}
    said |= {"says": change.says, "load": [load, os.getloadavg()[0]], "seconds": time.monotonic() - begun}
    said |= {"a": asdict(change.a), "b": asdict(change.b), "steps_s": clocks}
    told.write_text(json.dumps(said) + "\n")
    means = ", ".join(f"{s} {1e3 * sum(c['0']) / len(c['0']):.1f}" for s, c in sorted(clocks.items()))
    print(f"{name}-{take}: {means} ms a step, {time.monotonic() - begun:.0f} s, load {load:.1f}", flush=True)


def run(bench: Bench, jobs: dict[str, Job], scratch: Path, out: Path, peak: float) -> dict[str, dict[str, list[float]]]:
    """Runs jobs in turns, writes what a tool is given below `out`, and returns the seconds of steps by job and process.

    Raises RuntimeError where a process fails.
    """
    _pipes(scratch, jobs)
    children: dict[str, list[Child]] = {}
    pipes: list[int] = []
    try:
        for side, job in jobs.items():
            here = scratch / side
            for folder in ("logs", "truth", "profiles"):
                (here / folder).mkdir(parents=True)
            kept = bench.out / ".warm" / job.program
            if kept.exists():
                shutil.copytree(kept, here / "compile_cache")
            (here / "job.json").write_text(job.to_json())
            children[side] = _started(bench, job, here, scratch, side, tuple(jobs))
        (first, *_) = jobs
        for p in range(jobs[first].processes):
            pipes.append(os.open(scratch / f"{first}.{p}", os.O_RDWR))
            os.write(pipes[-1], b"x")
        for worker in [w for side, workers in children.items() for w in workers[-jobs[side].processes :]]:
            if worker.wait(LIMIT_S) != 0:
                raise RuntimeError(f"a process failed or takes longer than {LIMIT_S:.0f} s\n{_errors(scratch)}")
    finally:
        for child in (c for some in children.values() for c in some):
            child.kill()
            child.wait()
        for pipe in pipes:
            os.close(pipe)
    for side, job in jobs.items():
        kept = bench.out / ".warm" / job.program
        if not kept.exists():
            shutil.copytree(scratch / side / "compile_cache", kept)
        _bundle(job, scratch / side, out / side, peak)
    return {
        side: {str(p): _clocks(scratch / side / "truth" / f"attempt_0.process_{p}.jsonl") for p in range(job.processes)}
        for side, job in jobs.items()
    }


def _pipes(scratch: Path, jobs: dict[str, Job]) -> None:
    for side, job in jobs.items():
        for p in range(job.processes):
            os.mkfifo(scratch / f"{side}.{p}")


def _errors(scratch: Path) -> str:
    return "\n".join(p.read_text()[-1500:] for p in sorted(scratch.glob("*/logs/*.err")))


def _warm(bench: Bench, job: Job) -> None:
    """Compiles its program once, so that no run of a pair pays for it."""
    if (bench.out / ".warm" / job.program).exists():
        return
    short = replace(job, steps=6, wire_s=0.0)
    with tempfile.TemporaryDirectory(prefix="pairs-") as scratch:
        run(bench, {"w": short}, Path(scratch), Path(scratch) / "out", 1e9)


def _started(bench: Bench, job: Job, here: Path, scratch: Path, side: str, order: tuple[str, ...]) -> list[Child]:
    """Its processes, the network's first where it is slowed."""
    port, children = free_port(), []
    ports = [port] * job.processes
    after = order[(order.index(side) + 1) % len(order)]
    if job.wire_s:
        wire = bench.nursery.start(
            WIRE, [port, job.processes, [], job.wire_s, "wire.json"], cwd=here, stem=here / "logs" / "wire"
        )
        children.append(wire)
        deadline = time.monotonic() + 20
        while not (here / "wire.json").exists():
            if time.monotonic() > deadline:
                raise RuntimeError("the network could not be slowed")
            time.sleep(0.01)
        ports = json.loads((here / "wire.json").read_text())["ports"]
    children += [
        bench.nursery.start(
            WORKER,
            ["job.json", p, ports[p], port, str(scratch / f"{side}.{p}"), str(scratch / f"{after}.{p}")],
            cwd=here,
            stem=here / "logs" / f"attempt_0.process_{p}",
            XLA_FLAGS="--xla_cpu_multi_thread_eigen=false",
            PJRT_NPROC="1",
        )
        for p in range(job.processes)
    ]
    return children


def _clocks(path: Path) -> list[float]:
    """Seconds of each step by the worker's own clock."""
    ends = [e for e in map(json.loads, path.read_text().splitlines()) if e["event"] == "step_end"]
    return [(e["ns"] - e["start_ns"]) / 1e9 for e in ends][SKIP:]


def _bundle(job: Job, here: Path, out: Path, peak: float) -> None:
    """What a tool is given: log, profiles and what the job's owner says of it. Goodput entries are left out:
    they mark where steps begin, and the pauses for other turns would count as steps."""
    shutil.rmtree(out, ignore_errors=True)
    (out / "logs").mkdir(parents=True)
    day = time.strftime("%Y%m%d", time.gmtime())
    shutil.copyfile(here / "logs" / "attempt_0.process_0.out", out / "logs" / f"attempt_0_{day}.log")
    for trace in sorted((here / "profiles").glob("attempt_*/window_*/process_*/plugins/profile/*/*.xplane.pb")):
        folder = out / trace.relative_to(here).parents[3]
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{trace.name}.gz").open("wb") as f, gzip.GzipFile("", "wb", 3, f, mtime=0) as packed:
            packed.write(trace.read_bytes())
    facts = job_facts("job", job.processes, job.dims, job.mesh, peak) | {"precision": job.precision}
    (out / "chipledger.json").write_text(json.dumps(facts, indent=1) + "\n")
