"""Shares of the peak that the TPU compiler itself expects of products: an anchor for chips of which little is published.

Of each bundled compiled run of a dense model: FLOPs over the compiler's cycles of all products with weights, beside
those of the fastest of them, which is taken to run at the peak. Divided by what narrow products and few tokens cost
(`simulators.training.step`), this is the share of a wide product on many tokens.
"""

import tempfile
from pathlib import Path

import numpy as np

from catalog import chip, model
from collectors.ingest import ingest
from runs.store import Store
from simulators.training.efficiency import generation
from simulators.training.layout import layouts
from simulators.training.machine import machine
from simulators.training.step import at_peaks
from simulators.training.work import work

RUNS = Path(__file__).parents[1] / "reference" / "runs"
NAMES = ("compiled-llama3.1-8b-v5p", "compiled-llama3.1-8b-v6e")
LAID = layouts(fsdp=4, tensor=4, micro=4, remat=2)  # of both
MOST = 0.95


def anchors() -> dict[str, float]:
    """Generation -> the share of a wide product."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store")
        told = dict(_anchor(store, name) for name in NAMES)
    return told


def _anchor(store: Store, name: str) -> tuple[str, float]:
    run = store.get(ingest([RUNS / name], store).run_id)
    facts = {key: fact.value for key, fact in run.manifest.facts.items()}
    ops = [
        r
        for r in run.tables.arrow("ops").to_pylist()
        if r["category"] in ("matmul", "convolution") and r["cycles"] and "/attention/" not in _inside(r["scope"])
    ]
    rates = [r["flops"] / r["cycles"] for r in ops]
    flops, cycles = (sum(r[k] * (r["count"] or 1) for r in ops) for k in ("flops", "cycles"))
    of, on = model(facts["model"]), machine(chip(facts["chip"]))
    peaks = at_peaks(work(of, facts["seq"]), LAID, np.ones(1), facts["global_batch"], on)
    full = 1 / (1 + 1 / peaks.width[0]) / (1 + 1 / peaks.tokens[0])
    return generation(on.chip), min(flops / cycles / max(rates) / full, MOST)


def _inside(scope: str | None) -> str:
    """The scope of an operation, its own products with weights not counted as attention's."""
    return "" if scope and scope.rsplit("/", 2)[-2] in ("wq", "wkv", "wo") else f"/{scope}/"


if __name__ == "__main__":
    print(anchors())
