"""Shares of the peak that the TPU compiler itself expects of products, beside those that published runs reached.

Of each bundled compiled run of a dense model: FLOPs over the compiler's cycles of all products with weights, beside
those of the fastest of them, which is taken to run at the peak.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from catalog import chip, model
from collectors.ingest import ingest
from runs.store import Store
from simulators.training.efficiency import Efficiency
from simulators.training.layout import layouts
from simulators.training.machine import machine
from simulators.training.step import BACKWARD, at_peaks
from simulators.training.work import work

RUNS = Path(__file__).parents[1] / "reference" / "runs"
NAMES = ("compiled-llama3.1-8b-v6e", "compiled-llama3.1-8b-v5p")
LAID = layouts(fsdp=4, tensor=4, micro=4, remat=2)  # of both
INNER = ("scores", "values")  # attention's own products, which have no weights


def anchors(shares: Callable[[str], Efficiency]) -> list[dict[str, Any]]:
    """Shares of the peak of all products with weights: by shares that were fitted to published runs, and by the
    compiler."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store")
        return [_anchor(store, name, shares) for name in NAMES]


def _anchor(store: Store, name: str, shares: Callable[[str], Efficiency]) -> dict[str, Any]:
    run = store.get(ingest([RUNS / name], store).run_id)
    facts = {key: fact.value for key, fact in run.manifest.facts.items()}
    ops = [
        r
        for r in run.tables.arrow("ops").to_pylist()
        if r["category"] in ("matmul", "convolution") and r["cycles"] and not set(INNER) & set(r["scope"].split("/"))
    ]
    fastest = max(r["flops"] / r["cycles"] for r in ops)
    flops, cycles = (sum(r[k] * (r["count"] or 1) for r in ops) for k in ("flops", "cycles"))
    of, on = model(facts["model"]), machine(chip(facts["chip"]))
    peaks = at_peaks(work(of, facts["seq"]), LAID, np.zeros(1), facts["global_batch"], on)
    timed = peaks.timed(shares(on.chip)).parts["products"][0]
    ours = float(peaks.products[0] * peaks.microbatches[0] * (1 + BACKWARD) / timed)
    there = flops / cycles / fastest
    row = {"ours": ours, "compiler": there, "error": ours / there - 1}
    return {"run": name, "what": "share of the peak, products"} | {k: float(f"{v:.4g}") for k, v in row.items()}
