"""Makes the bundled training run: `python -m reference.train.launch --out reference/runs/training`.

Starts the processes, kills some as the plan says, starts the job anew as a scheduler would, and bundles what the job
wrote into `--out`, and what was truly done to it into `<out>.truth.json` beside it.
"""

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from errors import ChipledgerError, InputError
from reference.train import bundle
from reference.train.plan import PLANS, Kill, Plan

ROOT = Path(__file__).resolve().parents[2]
POLL_S = 0.01


class Tail:
    """Reads what has been appended to a JSON-lines file since the last look."""

    def __init__(self, path: Path):
        self._path, self._offset = path, 0

    def new(self) -> list[dict]:
        if not self._path.exists():
            return []
        with self._path.open("rb") as f:
            f.seek(self._offset)
            data = f.read()
        end = data.rfind(b"\n") + 1
        self._offset += end
        return [json.loads(line) for line in data[:end].splitlines()]

    def begins(self, step: int) -> bool:
        """Whether what is new says that `step` began."""
        return any(e["event"] == "step_start" and e["step"] == step for e in self.new())


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start_workers(plan: Plan, job: Path, attempt: int) -> list[subprocess.Popen]:
    """The processes of one attempt, in folder `job`; each dies when its standard input, a pipe from here, closes."""
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
        "PJRT_NPROC": "1",
    }
    port, workers = str(free_port()), []
    for process in range(plan.processes):
        command = [sys.executable, "-m", "reference.train.worker", "plan.json", str(attempt), str(process), port]
        stem = f"attempt_{attempt}.process_{process}"
        with open(job / "logs" / f"{stem}.out", "wb") as out, open(job / "logs" / f"{stem}.err", "wb") as err:
            workers.append(
                subprocess.Popen(command, cwd=job, env=environment, stdin=subprocess.PIPE, stdout=out, stderr=err)
            )
    return workers


def end(workers: list[subprocess.Popen]) -> None:
    """Ends all of `workers` and waits until they are gone."""
    for worker in workers:
        if worker.poll() is None:
            worker.kill()
    for worker in workers:
        worker.wait()
        worker.stdin.close()


def run_attempt(plan: Plan, job: Path, attempt: int) -> dict:
    """Runs one attempt until it has finished, or a process has died and the rest were ended.

    Returns {launched_ns, ended_ns, finished} and, of an attempt that was killed, {kill_ns, noticed_ns}.
    Raises RuntimeError when a process dies that was not killed, or the attempt takes too long.
    """
    kill: Kill | None = next((k for k in plan.kills if k.attempt == attempt), None)
    record = {"attempt": attempt, "launched_ns": time.time_ns()}
    workers = start_workers(plan, job, attempt)
    # the step to die in has begun on every process: before that, another may still be ending the step before
    tails = [Tail(job / "truth" / f"attempt_{attempt}.process_{p}.jsonl") for p in range(plan.processes) if kill]
    deadline, next_check = time.monotonic() + plan.attempt_timeout_s, time.monotonic() + plan.health_check_s
    try:
        while True:
            time.sleep(POLL_S)
            tails = [tail for tail in tails if not tail.begins(kill.step)]
            if kill and not tails and "kill_ns" not in record:
                time.sleep(kill.delay_s)
                record["kill_ns"] = time.time_ns()
                workers[kill.process].send_signal(signal.SIGKILL)
            if all(worker.poll() == 0 for worker in workers):
                record["ended_ns"] = time.time_ns()
                return record | {"finished": True}
            if time.monotonic() < next_check:
                continue
            next_check = time.monotonic() + plan.health_check_s
            dead = [p for p, worker in enumerate(workers) if worker.poll() not in (None, 0)]
            if dead and "kill_ns" not in record or time.monotonic() > deadline:
                error = (job / "logs" / f"attempt_{attempt}.process_{(dead or [0])[0]}.err").read_text()[-3000:]
                raise RuntimeError(f"attempt {attempt}: processes {dead} failed or it took too long\n{error}")
            if dead:
                record["noticed_ns"] = time.time_ns()
                break
    finally:
        end(workers)
    record["ended_ns"] = time.time_ns()
    return record | {"finished": False}


def run(plan: Plan, out: Path) -> Path:
    """Makes the run `plan` into the folder `out`, which must be absent or a former run; returns the truth file."""
    bundle.check_replaceable(out)
    with tempfile.TemporaryDirectory(prefix="reference-training-") as scratch:
        job = Path(scratch)
        for folder in ("logs", "truth", "checkpoints", "compile_cache", "profiles"):
            (job / folder).mkdir()
        (job / "plan.json").write_text(plan.to_json())
        attempts: list[dict] = []
        while not attempts or not attempts[-1]["finished"]:
            attempt, cache = len(attempts), job / "compile_cache"
            deleted_ns = None
            if attempts:
                time.sleep(plan.reschedule_s)
            if attempt in plan.cold_attempts:
                shutil.rmtree(cache)
                cache.mkdir()
                deleted_ns = time.time_ns()
            entries = len(list(cache.iterdir()))
            print(f"attempt {attempt}: starting, {entries} entries in the compile cache", flush=True)
            attempts.append(run_attempt(plan, job, attempt))
            attempts[-1] |= {"compile_cache_entries_at_start": entries, "compile_cache_deleted_ns": deleted_ns}
            print(f"attempt {attempt}: {'finished' if attempts[-1]['finished'] else 'killed'}", flush=True)
        return bundle.write(plan, attempts, job, out)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m reference.train.launch", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the run; a former run there is replaced")
    parser.add_argument("--plan", default="bundled", choices=sorted(PLANS), help="what to run (default: bundled)")
    options = parser.parse_args(argv)
    try:
        if not hasattr(signal, "SIGKILL"):
            raise InputError("this program kills processes the POSIX way", expected="Linux or macOS")
        truth = run(PLANS[options.plan], options.out)
    except ChipledgerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(bundle.summary(json.loads(truth.read_text())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
