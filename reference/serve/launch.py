"""Makes the bundled serving run: `python -m reference.serve.launch --out reference/runs/serving`.

Trains the two models, starts the engine, sends it the traffic, and bundles what the engine and the client wrote: the
engine's side into `--out`, the client's into `<out>-client`, and what was truly done into `<out>.truth.json`.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from errors import ChipledgerError
from reference.serve import bundle, client
from reference.serve.plan import PLANS, Plan
from reference.serve.traffic import traffic

ROOT = Path(__file__).resolve().parents[2]
START_S = 300.0  # how long the engine may take to compile


def start(module: str, *arguments: str, job: Path, one_core: bool) -> subprocess.Popen:
    """A process of `reference.serve` in the folder `job`. The engine computes on one core; another is the client's."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    if one_core:
        environment |= {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false", "PJRT_NPROC": "1"}
    command = [sys.executable, "-m", f"reference.serve.{module}", *arguments]
    return subprocess.Popen(command, cwd=job, env=environment, stdin=subprocess.PIPE)


def run(plan: Plan, out: Path, weights: Path | None = None) -> Path:
    """Makes the run `plan` into the folder `out`, which must be absent or a former run; returns the truth file.

    `weights`: models trained before; None: they are trained now.
    """
    bundle.check_replaceable(out)
    with tempfile.TemporaryDirectory(prefix="reference-serving-") as scratch:
        job = Path(scratch)
        (job / "plan.json").write_text(plan.to_json())
        if not weights:
            weights = job / "weights.npz"
            if start("training", "plan.json", str(weights), job=job, one_core=False).wait():
                raise RuntimeError("the models could not be trained")
        engine = start("server", "plan.json", str(weights), job=job, one_core=True)
        try:
            answers, start_s, end_s = serve(plan, job, engine)
            engine.stdin.close()
            if engine.wait(timeout=120):
                raise RuntimeError("the engine failed at its end")
        finally:
            engine.kill()
            engine.wait()
        return bundle.write(plan, job, answers, (start_s, end_s), out)


def serve(plan: Plan, job: Path, engine: subprocess.Popen) -> tuple[list[client.Answer], float, float]:
    """Waits for the engine, then sends everything."""
    deadline_s = time.monotonic() + START_S
    while not (job / "port").exists():
        if engine.poll() is not None or time.monotonic() > deadline_s:
            raise RuntimeError("the engine did not start")
        time.sleep(0.05)
    port = int((job / "port").read_text())
    asks = traffic(plan)
    print(f"sending {len(asks)} requests in {sum(p.seconds for p in plan.phases):.0f} s", flush=True)
    scraper = client.Scraper(port, job / "metrics.prom", plan.scrape_every_s)
    scraper.start()
    result = client.replay(plan, port, asks)
    scraper.stop()
    return result


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m reference.serve.launch", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the run; a former run there is replaced")
    parser.add_argument("--plan", default="bundled", choices=sorted(PLANS), help="what to run (default: bundled)")
    parser.add_argument("--weights", type=Path, help="models that reference.serve.training made (default: made now)")
    options = parser.parse_args(argv)
    try:
        weights = options.weights.resolve() if options.weights else None
        truth = run(PLANS[options.plan], options.out.resolve(), weights)
    except ChipledgerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(bundle.describe(truth))
    return 0


if __name__ == "__main__":
    sys.exit(main())
