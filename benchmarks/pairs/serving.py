"""Pairs of served runs: the reference engine on CPU under the same traffic, with one known change."""

import dataclasses
import json
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.diagnosis.make import Bench
from benchmarks.diagnosis.serving.launch import DIMS, ENGINE, START_S, TENANTS, weights
from reference.serve import bundle, client
from reference.serve.plan import Phase, Plan
from reference.serve.traffic import traffic

WORKER = "benchmarks.pairs.serving_worker"
SECONDS, RATE = 20.0, 5.0


@dataclass(frozen=True)
class ServedChange:
    """`says`: what the sentence has to name; `parts`: of a request's time, which the change moves most."""

    kind: str
    plan: Plan
    says: tuple[str, ...]
    parts: tuple[str, ...]
    host_s: float = 0.0


def base(seed: int) -> Plan:
    return Plan(
        name="served",
        phases=(Phase("steady", SECONDS, RATE, cv=1.0),),
        dims=DIMS,
        engine=ENGINE,
        tenants=TENANTS,
        target_steps=150,
        draft_steps=150,
        seed=1,
        traffic_seed=seed,
        log_every_s=1.0,
        scrape_every_s=0.5,
        benchmark_round_s=0.05,
    )


def changes(seed: int) -> tuple[ServedChange, ...]:
    plan = base(seed)
    one = dataclasses.replace(plan, engine=dataclasses.replace(ENGINE, max_seqs=1))
    longer = tuple(dataclasses.replace(t, output_tokens=2 * t.output_tokens) for t in TENANTS)
    return (
        ServedChange("batch_limit", one, ("max num seqs",), ("queue_s",)),
        ServedChange("shape", dataclasses.replace(plan, tenants=longer), ("output tokens",), ("decode_s", "queue_s")),
        ServedChange("slow_host", plan, (), ("decode_s", "prefill_s", "queue_s"), host_s=0.03),
        ServedChange("nothing", plan, (), ()),
    )


def make(bench: Bench, change: ServedChange, take: int) -> None:
    """A take of a pair: A, its twin C and B one after another, the same requests at the same times."""
    name = f"serving-{change.kind}-{take}"
    told = bench.out / "truth" / f"{name}.json"
    if told.exists():
        return
    begun, load = time.monotonic(), os.getloadavg()[0]
    plan = base(change.plan.traffic_seed)
    clocks: dict[str, Any] = {}
    for side in "abc" if take % 2 else "cba":
        with tempfile.TemporaryDirectory(prefix="pairs-") as scratch:
            what, host_s = (change.plan, change.host_s) if side == "b" else (plan, 0.0)
            clocks[side] = {"0": run(bench, what, host_s, Path(scratch) / "job", bench.out / "pairs" / name / side)}
    said = {"family": "serving", "kind": change.kind, "says": change.says, "parts": change.parts, "take": take}
    said |= {"load": [load, os.getloadavg()[0]], "seconds": time.monotonic() - begun, "steps_s": clocks}
    told.write_text(json.dumps(said) + "\n")
    means = ", ".join(f"{s} {1e3 * sum(c['0']) / len(c['0']):.0f}" for s, c in sorted(clocks.items()))
    print(f"{name}: {means} ms a request, {time.monotonic() - begun:.0f} s, load {load:.1f}", flush=True)


def run(bench: Bench, plan: Plan, host_s: float, job: Path, out: Path) -> list[float]:
    """Serves the traffic of a plan, writes what a tool is given to `out`, and returns the seconds of each request by
    the client's clock. Raises RuntimeError where the engine does not start or does not end."""
    job.mkdir(parents=True)
    (job / "plan.json").write_text(plan.to_json())
    kept = bench.out / ".warm" / "serving"
    kept.mkdir(exist_ok=True)
    cache = kept / f"programs-{plan.engine.max_seqs}"
    if cache.exists():
        shutil.copytree(cache, job / "compile_cache")
    engine = bench.nursery.start(
        WORKER,
        ["plan.json", str(weights(kept, bench.nursery)), host_s],
        cwd=job,
        stem=job / "engine",
        XLA_FLAGS="--xla_cpu_multi_thread_eigen=false",
        PJRT_NPROC="1",
    )
    try:
        deadline = time.monotonic() + 2 * START_S
        while not (job / "port").exists():
            if engine.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"no engine\n{(job / 'engine.err').read_text()[-2000:]}")
            time.sleep(0.02)
        port = int((job / "port").read_text())
        scraper = client.Scraper(port, job / "metrics.prom", plan.scrape_every_s)
        scraper.start()
        answers, start_s, end_s = client.replay(plan, port, traffic(plan))
        scraper.stop()
        (job / "stop").touch()
        if engine.wait(60) != 0:
            raise RuntimeError(f"the engine failed\n{(job / 'engine.err').read_text()[-2000:]}")
    finally:
        engine.kill()
        engine.wait()
    if not cache.exists():
        shutil.copytree(job / "compile_cache", cache)
    bundle.write(plan, job, answers, (start_s, end_s), job / "out" / plan.name)
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(job / "out" / plan.name, out)
    (log,) = bundle.client_folder(job / "out" / plan.name).glob("engine_*.log")
    first, *rest = log.read_text().splitlines()
    prefix = first.partition("] ")[0]
    (out / log.name).write_text("\n".join([first, f"{prefix}] {(job / 'arguments.txt').read_text().strip()}", *rest]))
    return [a.latency_s for a in answers if a.done and not a.error]
