"""Runs the engine and its client for a case and its twin, and tells what the fault cost by the engine's own clocks."""

import dataclasses
import json
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.diagnosis.case import Case, Told
from benchmarks.diagnosis.nursery import Nursery
from reference.serve import bundle, client
from reference.serve.model import init
from reference.serve.plan import EngineConfig, ModelDims, Phase, Plan, Tenant
from reference.serve.traffic import traffic

SECONDS, RATE = 5.0, 8.0
START_S = 60.0
DIMS = ModelDims(layers=4, d_model=128, heads=4, kv_heads=2, head_dim=32, d_ff=384)
ENGINE = EngineConfig(context=256, pages=220, max_seqs=4, token_budget=128, row_buckets=(8, 32), page_buckets=(16,))
TENANTS = tuple(Tenant(name, 0.2, 144, 24, 24) for name in ("chat", "search", "code", "support", "batch"))
LONG = 0.35
"""Share of the requests that are long, where that is the fault."""
SLOWER = 2.0
"""How much longer a usual request waits for its first token, where a fault costs requests time and the chip none."""
WORKER, TRAIN = "benchmarks.diagnosis.serving.worker", "benchmarks.diagnosis.serving.train"


def plan_of(case: Case) -> Plan:
    """The run as its case has it; without a fault, the same traffic on an engine that suits it."""
    engine, tenants, rate = ENGINE, TENANTS, RATE
    for p in case.planted:
        much = p.seconds  # 0 to 1: how severe
        if p.cause == "queueing":
            engine = dataclasses.replace(engine, max_seqs=1)
        elif p.cause == "kv_preemption":
            engine = dataclasses.replace(engine, pages=42 - round(6 * much))
        elif p.cause == "prefix_thrash":
            engine = dataclasses.replace(engine, pages=76)
        elif p.cause == "long_prompts":
            usual = tuple(dataclasses.replace(t, share=t.share * (1 - LONG)) for t in tenants)
            tenants = (*usual, Tenant("report", LONG, 0, 170, 8))
    phase = Phase("steady", SECONDS, rate, cv=1.0)
    return Plan(
        name=case.name,
        phases=(phase,),
        dims=DIMS,
        engine=engine,
        tenants=tenants,
        target_steps=150,
        draft_steps=150,
        seed=1,
        traffic_seed=case.seed % 100_000,
        log_every_s=1.0,
        scrape_every_s=0.5,
        benchmark_round_s=0.05,
    )


@dataclass
class Served:
    """A run: its folders as a tool is given them, and the records of the engine."""

    engine: Path
    client: Path
    truth: dict[str, Any]
    iterations: list[dict[str, Any]]
    requests: list[dict[str, Any]]
    compiled_s: float

    @property
    def busy_s(self) -> float:
        return sum(i["dur_ns"] for i in self.iterations) / 1e9

    @property
    def held_s(self) -> float:
        return float(self.truth["chip_seconds"]["held"])

    @property
    def first_token_s(self) -> float:
        return median((r["first_token_ns"] - r["arrival_ns"]) / 1e9 for r in self.requests if r["first_token_ns"])


def weights(kept: Path, nursery: Nursery) -> Path:
    """The models, trained once for a set; beside them the same with a draft model that knows nothing."""
    good = kept / "weights.npz"
    if not good.exists():
        plan = kept / "plan.json"
        plan.write_text(plan_of(Case("models", 0, "serving", "one", 1, 0)).to_json())
        child = nursery.start(TRAIN, [str(plan), str(kept / "training.npz")], cwd=kept, stem=kept / "training")
        if child.wait(300) != 0:
            raise RuntimeError(f"the models could not be trained\n{(kept / 'training.err').read_text()[-2000:]}")
        with np.load(kept / "training.npz") as file:
            said = {name: file[name] for name in file}
        blank = init(dataclasses.replace(DIMS, layers=1), 99)
        np.savez(kept / "blank.npz", **(said | {f"draft.{name}": w for name, w in blank.items()}))
        (kept / "training.npz").rename(good)
    return good


def run(case: Case, job: Path, kept: Path, nursery: Nursery) -> Served:
    """Serves the traffic of a case. Raises RuntimeError where the engine does not start or does not end."""
    job.mkdir(parents=True)
    plan, causes = plan_of(case), {p.cause for p in case.planted}
    (job / "plan.json").write_text(plan.to_json())
    cache = kept / "programs"
    if cache.exists():
        shutil.copytree(cache, job / "compile_cache")
    models = weights(kept, nursery).with_name("blank.npz" if "speculation_waste" in causes else "weights.npz")
    engine = nursery.start(
        WORKER,
        ["plan.json", str(models), "cold_start" in causes],
        cwd=job,
        stem=job / "engine",
        XLA_FLAGS="--xla_cpu_multi_thread_eigen=false",
        PJRT_NPROC="1",
    )
    try:
        deadline = time.monotonic() + START_S
        while not (job / "port").exists():
            if engine.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{case.name}: no engine\n{(job / 'engine.err').read_text()[-2000:]}")
            time.sleep(0.02)
        port, ready_ns = int((job / "port").read_text()), time.time_ns()
        scraper = client.Scraper(port, job / "metrics.prom", plan.scrape_every_s)
        scraper.start()
        answers, start_s, end_s = client.replay(plan, port, traffic(plan))
        scraper.stop()
        (job / "stop").touch()
        if engine.wait(60) != 0:
            raise RuntimeError(f"{case.name}: the engine failed\n{(job / 'engine.err').read_text()[-2000:]}")
    finally:
        engine.kill()
        engine.wait()
    if not cache.exists() and not causes:
        shutil.copytree(job / "compile_cache", cache)
    requests, iterations = (json.loads((job / f"{name}.json").read_text()) for name in ("requests", "iterations"))
    path = bundle.write(plan, job, answers, (start_s, end_s), job / "out" / case.name)
    said = [json.loads(line) for line in (job / "truth.jsonl").read_text().splitlines()]
    compiled = sum(e["seconds"] for e in said if e["event"] == "compile" and e["ns"] > ready_ns)
    out = job / "out" / case.name
    return Served(out, bundle.client_folder(out), json.loads(path.read_text()), iterations, requests, compiled)


def make(case: Case, out: Path, scratch: Path, kept: Path, nursery: Nursery) -> tuple[list[Told], float, float, dict]:
    """A case into the folder `out`: its fault, its chip-seconds, those of its twin, and what else the truth says.

    What a tool is given is the engine's own view of a run or the client's, by the case's seed.
    """
    twin = run(case.twin, scratch / "twin", kept, nursery)
    ran = run(case, scratch / "run", kept, nursery) if case.planted else twin
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(ran.client if case.seed % 2 else ran.engine, out)
    told = [Told(p.cause, _cost_s(p.cause, ran, twin), _basis(p.cause), {}) for p in case.planted]
    extra: dict[str, Any] = {
        "view": "client" if case.seed % 2 else "engine",
        "busy_s": ran.busy_s,
        "twin_busy_s": twin.busy_s,
        "first_token_s": ran.first_token_s,
        "twin_first_token_s": twin.first_token_s,
        "preemptions": ran.truth["totals"]["preemptions"],
    }
    if any(t.chip_seconds is None for t in told):
        extra["dominates"] = ran.first_token_s > SLOWER * twin.first_token_s
    return told, ran.held_s, twin.held_s, extra


def _basis(cause: str) -> str:
    return "clocks" if cause in ("kv_preemption", "cold_start") else "twin"


def _cost_s(cause: str, ran: Served, twin: Served) -> float | None:
    """Chip-seconds that a fault cost; None for one that makes requests wait while the chip works as it would."""
    if cause in ("queueing", "long_prompts"):
        return None
    if cause == "cold_start":
        return ran.compiled_s
    if cause == "kv_preemption":
        parts = [
            i["dur_ns"] * i["recomputed_tokens"] / max(i["prefill_tokens"] + i["decode_requests"], 1)
            for i in ran.iterations
        ]
        return sum(parts) / 1e9
    return max(ran.busy_s - twin.busy_s, 0.0)
