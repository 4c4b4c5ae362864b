"""Makes a reference run for GPUs: `python -m reference.gpu.launch --framework torch --out FOLDER [--python PYTHON]`.

PYTHON has the framework (and for JAX its CUDA build); it runs the ranks, on a GPU where there is one, else on the CPU.
What the job wrote goes into `--out`, and what was truly done to it into `<out>.truth.json` beside it.
"""

import argparse
import gzip
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from errors import ChipledgerError, InputError
from reference.gpu.plan import PLANS, Plan
from reference.train.bundle import SIDECAR, check_replaceable, compact, cpu_model, truth_path
from reference.train.launch import free_port

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 600


def run(plan: Plan, framework: str, job: Path, python: str) -> None:
    """The job itself, in folder `job`. Raises InputError where a rank failed."""
    (job / "plan.json").write_text(plan.to_json())
    port = free_port()
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    ranks = []
    for rank in range(plan.ranks):
        command = [python, "-m", f"reference.gpu.{framework}_worker", "plan.json", str(rank), str(port)]
        with (job / f"rank-{rank}.out").open("wb") as out:
            ranks.append(subprocess.Popen(command, cwd=job, env=environment, stdout=out, stderr=subprocess.STDOUT))
    try:
        codes = [rank.wait(TIMEOUT_S) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    if any(codes):
        failed = next(r for r, code in enumerate(codes) if code)
        said = (job / f"rank-{failed}.out").read_text(errors="replace").strip().splitlines()
        told = next((line for line in reversed(said) if "Error" in line), said[-1] if said else "it said nothing")
        raise InputError(f"rank {failed} ended with {codes[failed]}: {told}")


def bundle(plan: Plan, job: Path, out: Path) -> Path:
    """What the job wrote into `out`; returns the truth file."""
    records = [
        [json.loads(line) for line in (job / "truth" / f"rank-{r}.jsonl").read_text().splitlines()]
        for r in range(plan.ranks)
    ]
    truth = _truth(plan, records)
    staged = out.parent / f".{out.name}.partial"
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir(parents=True)
    for trace in [*sorted((job / "traces").glob("*.json")), *sorted((job / "profile").rglob("*.xplane.pb"))]:
        with (staged / f"{trace.name}.gz").open("wb") as f, gzip.GzipFile("", "wb", 9, f, mtime=0) as packed:
            packed.write(_anonymous(trace.read_bytes()) if trace.suffix == ".json" else trace.read_bytes())
    (staged / SIDECAR).write_text(json.dumps(_sidecar(plan, truth), indent=1) + "\n")
    shutil.rmtree(out, ignore_errors=True)
    staged.rename(out)
    path = truth_path(out)
    path.write_text(compact(truth))
    return path


def _anonymous(trace: bytes) -> bytes:
    """The trace without the folders of the machine that it was made on."""
    for folder in (str(ROOT), sys.prefix, str(Path.home())):
        trace = trace.replace(f"{folder}/".encode(), b"")
    return trace


def _truth(plan: Plan, records: list[list[dict]]) -> dict:
    ready = next(e for e in records[0] if e["event"] == "ready")
    rates: dict[int, list[float]] = {}
    for e in (e for events in records for e in events if e["event"] == "peak"):
        rates.setdefault(e["size"], []).append(e["flops_per_s"])
    best = max(rates.values(), key=sum)
    told = {
        "what": "What was truly done to the run beside this file, by the record of those who did it. "
        "All `_ns` are integer nanoseconds since 1970-01-01 UTC.",
        "plan": json.loads(plan.to_json()),
        "machine": {"cpu": cpu_model(), "cores": os.cpu_count(), "python": platform.python_version(), **ready},
        "peak": {"flops_per_s_per_chip": sum(best) / len(best), "by_size": {str(s): r for s, r in rates.items()}},
        "flops_per_step_and_rank": plan.dims.flops(),
        "injections": [
            {"what": e.pop("event"), "rank": rank, **e}
            for rank, events in enumerate(records)
            for e in [dict(e) for e in events if e["event"] in ("stall", "small_calls", "late")]
        ],
        "steps_columns": ["rank", "step", "start_ns", "end_ns"],
    }
    told["steps"] = [
        [rank, e["step"], e["start_ns"], e["end_ns"]]
        for rank, events in enumerate(records)
        for e in events
        if e["event"] == "step"
    ]
    return told


def _sidecar(plan: Plan, truth: dict) -> dict:
    dims = plan.dims
    model = {
        "layers": dims.layers,
        "emb_dim": dims.emb_dim,
        "heads": dims.heads,
        "head_dim": dims.head_dim,
        "mlp_dim": dims.mlp_dim,
        "vocab_size": dims.vocab_size,
        "seq_len": dims.seq_len,
        "global_batch_size": dims.batch_size * plan.ranks,
        "parameters": dims.parameters,
        "model_flops_per_step": dims.flops() * plan.ranks,
    }
    told = {
        "name": plan.name,
        "kind": "training",
        "chips": plan.ranks,
        "model": model,
        "parallelism": {"data": plan.ranks},
        "precision": "float32",
    }
    if truth["machine"]["gpus"]:
        return told
    return told | {
        "chip": "cpu-process",
        "peak_flops_per_s": truth["peak"]["flops_per_s_per_chip"],
        "peak_basis": "measured",
        "note": "One chip is one process on a share of a CPU. peak_flops_per_s is of one chip: float32 matrix products "
        "by all ranks at the same time, the best of several sizes.",
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--framework", choices=("torch", "jax"), default="torch")
    parser.add_argument("--python", default=sys.executable, help="a Python that has the framework")
    parser.add_argument("--plan", choices=PLANS, help="default: that of the framework")
    given = parser.parse_args()
    try:
        check_replaceable(given.out)
        with tempfile.TemporaryDirectory(prefix="chipledger-pytorch-") as folder:
            plan = PLANS[given.plan or given.framework]
            if given.framework == "jax":
                plan = replace(plan, ranks=1, late_rank=0)
            run(plan, given.framework, Path(folder), given.python)
            print(bundle(plan, Path(folder), given.out))
    except ChipledgerError as e:
        print(f"error: {e}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
