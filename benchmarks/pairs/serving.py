"""Pairs of served runs: the reference engine on CPU under the same traffic, with one known change."""

import dataclasses
import json
import os
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.diagnosis.make import Bench
from benchmarks.diagnosis.nursery import Child
from benchmarks.diagnosis.serving.launch import DIMS, ENGINE, START_S, TENANTS, weights
from reference.serve import bundle, client
from reference.serve.plan import Phase, Plan
from reference.serve.traffic import Ask, traffic

WORKER = "benchmarks.pairs.serving_worker"
SECONDS, RATE = 30.0, 10.0
TURN_S, REST_S = 5.0, 1.0  # how long each side serves at a time, and what it is left to end what it began


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
        ServedChange("batch_limit", one, ("limit of running requests",), ("queue_s",)),
        ServedChange("shape", dataclasses.replace(plan, tenants=longer), ("output tokens",), ("decode_s", "queue_s")),
        ServedChange("slow_host", plan, (), ("decode_s", "prefill_s", "queue_s"), host_s=0.003),
        ServedChange("nothing", plan, (), ()),
    )


def make(bench: Bench, change: ServedChange, take: int) -> None:
    """A take of a pair: A, its twin C and B serve the same requests, in turns, so that the machine's drift meets all
    alike."""
    name = f"serving-{change.kind}-{take}"
    told = bench.out / "truth" / f"{name}.json"
    if told.exists():
        return
    begun, load, plan = time.monotonic(), os.getloadavg()[0], base(change.plan.traffic_seed)
    sides = {"a": (plan, 0.0), "c": (plan, 0.0), "b": (change.plan, change.host_s)}
    with tempfile.TemporaryDirectory(prefix="pairs-") as scratch:
        clocks = run(bench, sides, Path(scratch), bench.out / "pairs" / name)
    said = {"family": "serving", "kind": change.kind, "says": change.says, "parts": change.parts, "take": take}
    said |= {"load": [load, os.getloadavg()[0]], "seconds": time.monotonic() - begun}
    told.write_text(json.dumps(said | {"steps_s": {s: {"0": c} for s, c in clocks.items()}}) + "\n")
    means = ", ".join(f"{s} {1e3 * sum(c) / len(c):.0f}" for s, c in sorted(clocks.items()))
    print(f"{name}: {means} ms a request, {time.monotonic() - begun:.0f} s, load {load:.1f}", flush=True)


def run(bench: Bench, sides: dict[str, tuple[Plan, float]], scratch: Path, out: Path) -> dict[str, list[float]]:
    """Serves the traffic of each side's plan, writes what a tool is given below `out`, and returns the seconds of each
    request by the client's clock. Raises RuntimeError where an engine does not start or does not end."""
    engines: dict[str, Child] = {}
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})  # and so the client's threads: engines have the last
    try:
        for side, (plan, host_s) in sides.items():
            engines[side] = _started(bench, plan, host_s, scratch / side)
        with ThreadPoolExecutor(len(sides)) as pool:
            served = [
                pool.submit(_served, plan, engines[side], scratch / side, turn, len(sides))
                for turn, (side, (plan, _)) in enumerate(sides.items())
            ]
            found = [one.result() for one in served]
    finally:
        os.sched_setaffinity(0, cores)
        for engine in engines.values():
            engine.kill()
            engine.wait()
    for (side, (plan, _)), (stretched, answers, span_s) in zip(sides.items(), found, strict=True):
        if not (kept := _programs(bench, plan)).exists():
            shutil.copytree(scratch / side / "compile_cache", kept)
        _bundled(stretched, scratch / side, answers, span_s, out / side)
    return {
        side: [a.latency_s for a in answers if a.done and not a.error]
        for side, (_, answers, _) in zip(sides, found, strict=True)
    }


def in_turns(asks: list[Ask], turn: int, turns: int) -> list[Ask]:
    """The same requests, TURN_S of them at a time and then a pause for what they leave behind and for the others. Who
    comes first in a round changes from round to round."""
    placed: list[Ask] = []
    for ask in asks:
        round_, at_s = divmod(ask.at_s, TURN_S)
        place = round_ * turns + (turn + round_) % turns
        placed.append(dataclasses.replace(ask, at_s=place * (TURN_S + REST_S) + at_s))
    return placed


def _served(
    plan: Plan, engine: Child, job: Path, turn: int, turns: int
) -> tuple[Plan, list[client.Answer], tuple[float, float]]:
    asks = in_turns(traffic(plan), turn, turns)
    (phase,) = plan.phases
    stretched = dataclasses.replace(phase, seconds=phase.seconds / TURN_S * turns * (TURN_S + REST_S))
    plan = dataclasses.replace(plan, phases=(stretched,))
    port = int((job / "port").read_text())
    scraper = client.Scraper(port, job / "metrics.prom", plan.scrape_every_s)
    scraper.start()
    answers, start_s, end_s = client.replay(plan, port, asks)
    scraper.stop()
    (job / "stop").touch()
    if engine.wait(60) != 0:
        raise RuntimeError(f"the engine failed\n{(job / 'engine.err').read_text()[-2000:]}")
    return plan, answers, (start_s, end_s)


def _programs(bench: Bench, plan: Plan) -> Path:
    kept = bench.out / ".warm" / "serving"
    kept.mkdir(exist_ok=True)
    return kept / f"programs-{plan.engine.max_seqs}"


def _started(bench: Bench, plan: Plan, host_s: float, job: Path) -> Child:
    job.mkdir(parents=True)
    (job / "plan.json").write_text(plan.to_json())
    cache = _programs(bench, plan)
    if cache.exists():
        shutil.copytree(cache, job / "compile_cache")
    engine = bench.nursery.start(
        WORKER,
        ["plan.json", str(weights(cache.parent, bench.nursery)), host_s],
        cwd=job,
        stem=job / "engine",
        XLA_FLAGS="--xla_cpu_multi_thread_eigen=false",
        PJRT_NPROC="1",
    )
    deadline = time.monotonic() + 2 * START_S
    while not (job / "port").exists():
        if engine.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"no engine\n{(job / 'engine.err').read_text()[-2000:]}")
        time.sleep(0.02)
    return engine


def _bundled(plan: Plan, job: Path, answers: list[client.Answer], span_s: tuple[float, float], out: Path) -> None:
    bundle.write(plan, job, answers, span_s, job / "out" / plan.name)
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(job / "out" / plan.name, out)
    (log,) = bundle.client_folder(job / "out" / plan.name).glob("engine_*.log")
    first, *rest = log.read_text().splitlines()
    prefix = first.partition("] ")[0]
    (out / log.name).write_text("\n".join([first, f"{prefix}] {(job / 'arguments.txt').read_text().strip()}", *rest]))
