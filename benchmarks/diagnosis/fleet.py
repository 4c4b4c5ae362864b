"""Simulated fleets: long jobs on many chips, with one fault more than their twin. Each says that it is simulated."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.diagnosis.case import Case, Told
from benchmarks.diagnosis.faults import BY_CAUSE
from reference.fleet import write
from simulators.fleet import Fleet, FleetPlan, host_name, simulate
from simulators.fleet_ranks import RanksPlan, profile

DAYS, HOSTS, CHIPS_PER_HOST, STEP_S = 5.0, 32, 8, 6.0
CHIPS = HOSTS * CHIPS_PER_HOST
START_NS = 1_788_220_800_000_000_000
CAUSES = {"accelerator": 4, "network": 2, "software": 2, "host_memory": 1, "user": 1}
BROKEN = 14  # interruptions that a bad host adds
PROFILED = 25
DAY_S = 86_400


def plans(case: Case) -> tuple[FleetPlan, RanksPlan, dict[str, Any]]:
    """The job, its profile and the place of its fault, all drawn from the case's seed."""
    rng = np.random.default_rng(case.seed)
    host, rank, day = int(rng.integers(HOSTS)), int(rng.integers(CHIPS)), float(rng.uniform(1.0, 2.5))
    job = FleetPlan(
        start_ns=START_NS,
        days=DAYS,
        hosts=HOSTS,
        chips_per_host=CHIPS_PER_HOST,
        causes=CAUSES,
        step_s=STEP_S,
        checkpoint_every=100,
        save_s=5.0,
        diurnal=0.005,
        model_flops_per_chip=STEP_S * 400e12,
        seed=case.seed % 100_000,
    )
    ranks = RanksPlan(
        start_ns=START_NS + round((DAYS - 0.6) * DAY_S) * 10**9,
        first_step=0,
        steps=PROFILED,
        hosts=HOSTS,
        chips_per_host=CHIPS_PER_HOST,
        stages=4,
        step_s=STEP_S * 0.985,
        seed=case.seed % 100_000,
    )
    place: dict[str, Any] = {}
    for p in case.planted:
        much = p.seconds  # 0 to 1: how severe
        if p.cause == "fleet_slow_rank":
            late = 0.15 + 0.2 * much
            job = replace(job, step_s=STEP_S * (1 + late * (1 - 1 / ranks.late_rests)))
            ranks, place = replace(ranks, late=rank, late_share=late), {"ranks": [rank]}
        elif p.cause == "fleet_slow_period":
            job = replace(job, slow=((day, 1.8 + 0.7 * much, 1.45 + 0.3 * much),))
        elif p.cause == "fleet_bad_host":
            more = {**CAUSES, "accelerator": CAUSES["accelerator"] + BROKEN + round(10 * much)}
            job = replace(job, causes=more, lemons=(host,), lemon_factor=400.0, reschedule_s=1800.0)
            place = {"hosts": [host_name(host)]}
        elif p.cause == "fleet_rare_saves":
            job = replace(job, checkpoint_every=int(2500 + 1500 * much))
        elif p.cause == "fleet_frequent_saves":
            job = replace(job, checkpoint_every=int(8 - 4 * much), save_s=8.0)
        elif p.cause == "fleet_slow_restart":
            job = replace(job, reschedule_s=6000.0 + 4000.0 * much)
    return job, ranks, place


def useful(fleet: Fleet) -> int:
    """Steps that the job got to: each counts once, however often it was taken."""
    return int(np.max(fleet.tables["steps"]["step"])) + 1


def make(case: Case, folder: Path) -> tuple[list[Told], float, float]:
    """The files of a case into `folder`; its fault with its cost, the job's chip-seconds, and what the twin needs of
    them for as many steps."""
    job, ranks, place = plans(case)
    sound, _, _ = plans(case.twin)
    # machines are as long in coming to the twin: that few are free is no fault of the host's
    sound = sound if job.lemons == () else replace(sound, reschedule_s=job.reschedule_s)
    fleet, twin = simulate(job), simulate(sound)
    if any(p.cause == "fleet_slow_period" for p in case.planted):
        begin, days, _ = job.slow[0]
        starts = (np.asarray(fleet.tables["steps"]["start_ns"]) - START_NS) / 1e9 / DAY_S
        inside = np.asarray(fleet.tables["steps"]["step"])[(starts >= begin) & (starts < begin + days)]
        place = {"steps": {"first": int(inside.min()), "last": int(inside.max()), "every": 1}}
    _write(case, fleet, ranks, folder)
    held = DAYS * DAY_S * CHIPS
    needs = held * min(useful(fleet) / useful(twin), 1.0)
    told = [Told(p.cause, held - needs, "twin", place) for p in case.planted]
    assert all(BY_CAUSE[t.cause].family == "fleet" for t in told)
    return told, held, needs


def _write(case: Case, fleet: Fleet, ranks: RanksPlan, folder: Path) -> None:
    at = int(np.searchsorted(fleet.tables["steps"]["start_ns"], ranks.start_ns))
    first = int(fleet.tables["steps"]["step"][min(at, len(fleet.tables["steps"]["step"]) - 1)])
    seen = profile(replace(ranks, first_step=first))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, columns in (fleet.tables | {n: seen[n] for n in ("captures", "collectives")}).items():
        write(name, columns, folder=folder)
    write("steps", seen["steps"], "steps-2", folder)
    facts = {
        "name": case.name,
        "kind": "simulated",
        "simulated": True,
        "chip": "h100",
        "chips": CHIPS,
        "precision": "bf16",
        "note": "Simulated.",
    }
    (folder / "chipledger.json").write_text(json.dumps(facts, indent=1) + "\n")
