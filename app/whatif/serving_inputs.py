"""What `whatif serving` is told, as the simulator wants it: a setup, traffic, and a run to calibrate on."""

import argparse
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analyzers.base import fact
from catalog import chip, model
from catalog.inference import BYTES
from catalog.models import Model
from errors import QuestionError
from simulators.serving.calibrate import Measured
from simulators.serving.setup import Setup, Speculation
from simulators.serving.traffic import Traffic, closed, gamma, of_tables

if TYPE_CHECKING:
    from runs.run import Run

REQUESTS = 1000  # where nobody says how many
ROUNDS = 10  # requests for each one in flight, at least
_LIKE_THE_RUN = {  # option: facts of a run that say the same
    "tensor": ("tensor_parallel_size",), "replicas": ("data_parallel_size",), "max_sequences": ("max_num_seqs",),
    "token_budget": ("max_num_batched_tokens",), "page_tokens": ("block_size",), "precision": ("precision",),
    "kv_precision": ("kv_precision",),
}  # fmt: skip
_SETUP = {
    "tensor": "tensor", "expert": "expert", "replicas": "replicas", "max_sequences": "max_sequences",
    "token_budget": "token_budget", "page_tokens": "page_tokens", "precision": "weights_precision",
    "experts_precision": "experts_precision", "kv_precision": "kv_precision",
    "memory_utilization": "memory_utilization", "peak_flops_per_s": "peak_flops_per_s",
}  # fmt: skip


def setup(args: argparse.Namespace, run: "Run | None") -> Setup:
    """The setup asked about; what is not said is as in the run, where one is given, else as vLLM has it.

    Raises QuestionError where a model, chip or number of chips is missing.
    """
    given = {k: getattr(args, k) for k in (*_SETUP, "model", "chip", "chips") if getattr(args, k) is not None}
    known = _facts(run) if run is not None else {}
    like = {k: v for k, v in known.items() if k not in given}
    if "chips" in given or "chip" in given:  # another machine: how the run's was split does not carry over
        like = {k: v for k, v in like.items() if k not in ("tensor", "replicas")}
    told = like | given
    missing = [n for n in ("model", "chip", "chips") if told.get(n) is None]
    if missing:
        raise QuestionError(
            "the setup is not complete", expected=", ".join(f"--{m}" for m in missing),
            advice="Or name a run that says it with --calibrate.",
        )  # fmt: skip
    return _setup(told, args)


def run_setup(args: argparse.Namespace, run: "Run") -> Setup:
    """The setup that `run` ran on; what it does not say is as asked. Raises QuestionError where nobody says it."""
    known = _facts(run)
    told = {k: getattr(args, k) for k in (*_SETUP, "model", "chip", "chips") if getattr(args, k) is not None} | known
    missing = [n for n in ("model", "chip", "chips") if told.get(n) is None]
    if missing:
        raise QuestionError(
            f"{run.manifest.name} does not say on what it ran: no {' and no '.join(missing)}",
            advice="Ingest it with --chip, --chips and --model, or put a chipledger.json beside its files.",
        )
    if "chips" in known and "tensor" not in known:
        told.pop("tensor", None)
    return _setup(told, args)


def _facts(run: "Run") -> dict[str, Any]:
    facts = run.manifest.facts
    found = {name: fact(facts, name) for name in ("model", "chip", "chips")}
    for option, names in _LIKE_THE_RUN.items():
        found[option] = next((v for n in names if (v := fact(facts, n)) is not None), None)
    for option in ("precision", "kv_precision"):
        if found[option] not in BYTES:
            found[option] = None
    return {k: v for k, v in found.items() if v is not None}


def _setup(told: dict[str, Any], args: argparse.Namespace) -> Setup:
    named = told["model"]
    if not isinstance(named, str | Model):
        raise QuestionError("the run's model is given by its dimensions", advice="Name one of the catalogue: --model.")
    numbers = {_SETUP[k]: v for k, v in told.items() if k in _SETUP and k != "peak_flops_per_s"}
    speculation = None
    if args.draft is not None:
        if args.acceptance is None:
            raise QuestionError("a draft without the share of its tokens that is kept", expected="--acceptance")
        speculation = Speculation(args.draft, args.acceptance, args.cost or 0.0)
    return Setup(
        model=model(named), chip=chip(told["chip"]), chips=int(told["chips"]), speculation=speculation,
        peak_flops_per_s=args.peak_flops_per_s, **numbers,
    )  # fmt: skip


def traffic(args: argparse.Namespace, run: "Run | None") -> Traffic:
    """What is asked of the setup: at a rate, with so many in flight, as a file has it, or as the run had it."""
    ways = [n for n in ("rate", "concurrency", "trace") if getattr(args, n, None) is not None]
    if len(ways) > 1:
        raise QuestionError(f"traffic in {len(ways)} ways", expected="one of --rate, --concurrency and --trace")
    if not ways and run is None:
        raise QuestionError("no traffic", expected="--rate or --concurrency with --input and --output, or --trace FILE")
    drawn = bool(ways) and ways[0] != "trace"
    unused = ("faster",) if drawn else ("input", "output", "prefix", "burst")
    if idle := [n for n in unused if getattr(args, n) is not None]:
        what = "requests drawn at random" if drawn else "a trace or a run, which has arrivals and lengths of its own"
        raise QuestionError(f"--{idle[0]} says nothing of {what}", advice="Leave it out.")
    if drawn:
        if args.input is None or args.output is None:
            raise QuestionError("requests without lengths", expected="--input and --output, in tokens")
        prefix = args.prefix or 0
        if ways[0] == "concurrency":
            count = args.requests or max(REQUESTS, ROUNDS * args.concurrency)
            return closed(args.concurrency, count, args.input, args.output, prefix)
        cv = 1.0 if args.burst is None else args.burst
        return gamma(args.rate, cv, args.requests or REQUESTS, args.input, args.output, prefix, args.seed)
    found = _trace(Path(args.trace)) if ways else of_tables(run.tables, run.manifest.name)
    if args.faster is not None:
        found = found.faster(args.faster)
    return found.first(args.requests) if args.requests else found


def _trace(path: Path) -> Traffic:
    """The requests of a file that a collector can read, through a store of its own that does not stay."""
    from collectors.ingest import ingest
    from runs.store import Store

    with tempfile.TemporaryDirectory(prefix=f"chipledger-{os.getpid()}-") as folder:
        store = Store(Path(folder))
        made = ingest([path], store)
        return of_tables(store.find(made.run_id).tables, path.name)


def measured(run: "Run") -> Measured:
    """What came of the requests of a run. Raises QuestionError where it has no times of single requests."""
    from analyzers.served import served

    found = served(run.tables)
    asked = of_tables(run.tables, run.manifest.name)
    times = {n: np.full(run.tables.rows("requests"), np.nan) for n in ("ttft_s", "tpot_s")}
    for name, values in times.items():
        values[found.order] = found.rows[name].to_numpy(dtype=float)
    return Measured(asked, times["ttft_s"][asked.rows], times["tpot_s"][asked.rows], run.manifest.name)
