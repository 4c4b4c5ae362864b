"""Starts a case's processes, again when one dies or none moves, as a scheduler would, and gathers their records."""

import json
import os
import shutil
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.diagnosis.case import Case
from benchmarks.diagnosis.nursery import ENVIRONMENT, Child, Nursery
from reference.train.launch import Tail, free_port

POLL_S = 0.01
NOTICE_S = 0.2  # how often the launcher looks whether all processes live
RESCHEDULE_S = 0.5
WATCHDOG_S = 2.5  # without a step of any process, once one is done
LIMIT_S = 60.0
WORKER = "benchmarks.diagnosis.training.worker"
WIRE = "benchmarks.diagnosis.training.wire"


@dataclass
class Ran:
    """What became of a job: its folder, when it began and ended, and the records of its workers by attempt."""

    folder: Path
    start_ns: int
    end_ns: int
    attempts: list[dict[str, Any]]
    events: list[list[list[dict[str, Any]]]] = field(repr=False)  # [attempt][process]

    @property
    def chip_seconds(self) -> float:
        """From the first process's own start to the end of the last, on all chips."""
        start = min(e["ns"] for worker in self.events[0] for e in worker if e["event"] == "job_start")
        end = max(e["ns"] for worker in self.events[-1] for e in worker if e["event"] == "job_end")
        return (end - start) / 1e9 * len(self.events[0])


class LauncherLog:
    """The launcher's own lines, as a job's keep them: `logs/launcher_<day>.log`."""

    def __init__(self, folder: Path):
        self._path = folder / f"launcher_{time.strftime('%Y%m%d', time.gmtime())}.log"

    def line(self, text: str, severity: str = "I") -> None:
        now = time.time_ns()
        clock = time.strftime("%m%d %H:%M:%S", time.gmtime(now // 10**9))
        with self._path.open("a") as f:
            f.write(f"{severity}{clock}.{now // 1000 % 10**6:06d} {os.getpid():7d} launcher.py:61] {text}\n")


def run(case: Case, job: Path, cache: Path, nursery: Nursery) -> Ran:
    """Runs a case in the empty folder `job`, with a copy of the compile cache `cache` (empty where that is the fault).

    Raises RuntimeError where a process fails that nobody hurt, or where it takes too long.
    """
    for folder in ("logs", "truth", "checkpoints", "profiles"):
        (job / folder).mkdir(parents=True)
    if cache.exists() and not any(p.cause == "cold_cache" for p in case.planted):
        shutil.copytree(cache, job / "compile_cache")
    (job / "compile_cache").mkdir(exist_ok=True)
    (job / "case.json").write_text(case.to_json())
    log, attempts, start_ns = LauncherLog(job / "logs"), [], time.time_ns()
    while not attempts or not attempts[-1]["finished"]:
        if len(attempts) > 6:
            raise RuntimeError(f"{case.name}: it does not come to its end")
        attempts.append(_attempt(case, job, len(attempts), log, nursery))
    events = [
        [_lines(job / "truth" / f"attempt_{a}.process_{p}.jsonl") for p in range(case.processes)]
        for a in range(len(attempts))
    ]
    return Ran(job, start_ns, time.time_ns(), attempts, events)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _attempt(case: Case, job: Path, attempt: int, log: LauncherLog, nursery: Nursery) -> dict[str, Any]:
    record: dict[str, Any] = {"attempt": attempt, "launched_ns": time.time_ns()}
    port = free_port()
    log.line(f"starting attempt {attempt} with {case.processes} ranks")
    environment = {"XLA_FLAGS": _flags(case), "PJRT_NPROC": "1"}
    for name, value in sorted({**ENVIRONMENT, **environment}.items()):
        log.line(f"{name}={value}")
    wire, ports = _slow_wire(case, job, attempt, port, nursery)
    workers = [
        nursery.start(
            WORKER,
            ["case.json", attempt, p, ports[p], port],
            cwd=job,
            stem=job / "logs" / f"attempt_{attempt}.process_{p}",
            **environment,
        )
        for p in range(case.processes)
    ]
    for worker in workers:
        worker.wait_born()
    try:
        dead = _watch(case, job, attempt, workers, log)
    finally:
        for child in (*workers, *wire):
            child.kill()
        for child in (*workers, *wire):
            child.wait()
    if dead is not None:
        record["died"] = dead
        _aftermath(case, job, dead, workers, log)
    record["ended_ns"] = time.time_ns()
    return record | {"finished": dead is None}


def _slow_wire(case: Case, job: Path, attempt: int, port: int, nursery: Nursery) -> tuple[list[Child], list[int]]:
    """What slows the network, where that is the fault, and to which port each process turns."""
    slow = next((p for p in case.planted if p.cause in ("slow_link", "slow_network")), None)
    if slow is None:
        return [], [port] * case.processes
    out = job / f"wire_{attempt}.json"
    arguments = [port, case.processes, [list(slow.ranks)] if slow.ranks else [], slow.seconds, out.name]
    wire = nursery.start(WIRE, arguments, cwd=job, stem=job / "logs" / f"wire_{attempt}")
    wire.wait_born()
    deadline = time.monotonic() + 20
    while not out.exists():
        if wire.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{case.name}: the network could not be slowed")
        time.sleep(POLL_S)
    return [wire], json.loads(out.read_text())["ports"]


def _watch(case: Case, job: Path, attempt: int, workers: list[Child], log: LauncherLog) -> dict[str, Any] | None:
    """Waits for the end: None when all have finished, else who died, how and when it was noticed."""
    tails = [Tail(job / "truth" / f"attempt_{attempt}.process_{p}.jsonl") for p in range(case.processes)]
    begun, moved, next_look, stepped = time.monotonic(), time.monotonic(), 0.0, False
    while True:
        time.sleep(POLL_S)
        if all(w.poll() == 0 for w in workers):
            return None
        now = time.monotonic()
        if now - begun > LIMIT_S:
            raise RuntimeError(f"{case.name}: attempt {attempt} takes too long")
        if now < next_look:
            continue
        next_look = now + NOTICE_S
        if fresh := [e for tail in tails for e in tail.new()]:
            moved = now
            stepped = stepped or any(e["event"] == "step_end" and e["step"] % 8 == 7 for e in fresh)
        gone = [p for p, w in enumerate(workers) if w.poll() not in (None, 0)]
        hurt = {p.cause: p for p in (*case.planted, *case.context)}
        if gone:
            if not {"restart_loop", "kill", "out_of_memory", "preemption", "nan_rollback"} & {*hurt}:
                error = (job / "logs" / f"attempt_{attempt}.process_{gone[0]}.err").read_text()[-3000:]
                raise RuntimeError(f"{case.name}: attempt {attempt}: ranks {gone} failed\n{error}")
            first = next((r for p in hurt.values() for r in p.ranks if r in gone), gone[0])
            return {"rank": first, "status": workers[first].poll(), "noticed_ns": time.time_ns(), "why": "gone"}
        if "hang" in hurt and stepped and now - moved > WATCHDOG_S:
            silent = hurt["hang"].ranks[0]
            log.line(f"Watchdog: no step completed for {WATCHDOG_S:.1f} s; job is hung", "E")
            for p in range(case.processes):
                where = "in train_step, before the dispatch" if p == silent else "in AllReduce, waiting for its peers"
                log.line(f"stack of rank {p}: {where}", "E")
            return {"rank": silent, "status": None, "noticed_ns": time.time_ns(), "why": "hang"}


def _aftermath(case: Case, job: Path, dead: dict[str, Any], workers: list[Child], log: LauncherLog) -> None:
    """What schedulers and kernels write when a process dies, then the wait until there are machines again."""
    rank, status, wait_s = dead["rank"], dead["status"], RESCHEDULE_S
    if status is not None and status < 0:
        log.line(f"rank {rank} (pid {workers[rank].pid}) was ended by signal {-status} ({_name(-status)})", "E")
    elif status is not None:
        log.line(f"rank {rank} (pid {workers[rank].pid}) exited with status {status}", "E")
    for p in case.planted:
        if p.cause == "out_of_memory":
            _dmesg(job / "logs", rank, workers[rank].pid or 0, told_year=p.told)
        elif p.cause == "preemption":
            log.line(f"waiting for capacity: {case.processes} spot instances requested")
            wait_s += p.seconds
        elif p.cause == "nan_rollback":
            good = sorted(int(f.name) for f in (job / "checkpoints").iterdir() if f.name.isdigit())
            log.line(f"rolling back to the checkpoint of step {good[-1]}: the loss was NaN")
    time.sleep(wait_s)


def _flags(case: Case) -> str:
    """Flags of XLA: one thread a process, and what a fault adds."""
    wrong = any(p.cause == "wrong_flags" for p in case.planted)
    return "--xla_cpu_multi_thread_eigen=false" + (" --xla_backend_optimization_level=0" if wrong else "")


def _name(number: int) -> str:
    return signal.Signals(number).name


def _dmesg(folder: Path, rank: int, pid: int, told_year: bool) -> None:
    """The lines of a kernel that was out of memory: as `dmesg -T` prints them, or as syslog keeps them."""
    now = time.gmtime()
    stamp = time.strftime("[%a %b %d %H:%M:%S %Y]", now)
    if not told_year:
        stamp = time.strftime("%b %d %H:%M:%S", now) + f" host-{rank} kernel: [ 8123.{pid % 10**6:06d}]"
    lines = (
        "python invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0, oom_score_adj=0",
        f"oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,task=python,pid={pid},uid=1000",
        f"Out of memory: Killed process {pid} (python) total-vm:18253612kB, anon-rss:16012244kB, file-rss:4kB",
    )
    path = folder / f"dmesg_host-{rank}_{time.strftime('%Y%m%d', now)}.log"
    path.write_text("".join(f"{stamp} {line}\n" for line in lines))
