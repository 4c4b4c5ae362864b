"""The planner's FLOPs, bytes along each axis and memory beside the TPU compiler's own, of the bundled compiled runs.

    python -m benchmarks.training_compiled

What the compiler chose for one program stands in `RUNS`, each a way of writing the step: its tables show it. The
program keeps 32-bit weights and both moments, sums whole arrays over tensor parallelism, and multiplies the scores of
whole blocks of queries.
"""

import json
import tempfile
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from catalog import model
from collectors.ingest import ingest
from runs.run import Run
from runs.store import Store
from simulators.training.computed import step_flops
from simulators.training.layout import Layouts, layouts
from simulators.training.memory import memory
from simulators.training.sent import axis_bytes
from simulators.training.work import work
from simulators.training.written import XLA, Written

PROGRAM = replace(
    XLA, recipe="float32", dealt_state=False, sequence_parallel=False, all_pairs=True, head_gradient_bytes=4.0
)
WINDOWED = replace(PROGRAM, scattered="windowed", head_scattered="windowed", head_width_bytes=4.0)
"""Products with weights that fsdp deals out are cut into turns; the projection's gradient comes in 32 bits."""
SUMMED = replace(PROGRAM, scattered="summed", head_scattered="summed", logits_again=True)
"""Gradients outside of experts are summed whole over fsdp; the logits are made twice."""
BATCH, SEQ, ALL = 16, 4096, np.ones(1)
HBM = 1e12  # of no chip: every layer is computed again, whatever there is room for
FOLDER = Path(__file__).parents[1] / "reference" / "runs"


@dataclass(frozen=True)
class Compiled:
    """A bundled run: its name, layout, how its program is written, and the planner's names of its axes."""

    name: str
    layout: Layouts
    written: Written
    axes: dict[str, str]


V6E = Compiled("compiled-llama3.1-8b-v6e", layouts(fsdp=4, tensor=4, micro=4, remat=2), WINDOWED, {"model": "tensor"})
RUNS = (
    V6E,
    replace(V6E, name="compiled-llama3.1-8b-v5p"),
    Compiled("compiled-gpt-oss-20b-v6e", layouts(fsdp=4, expert=4, micro=1, remat=2), SUMMED, {}),
)


def by_the_compiler(run: Run) -> dict[str, float]:
    """Bytes that a chip sends along each axis, by the compiler's table: of gathers it has the part of a chip, of others
    the array. What goes over two axes at once stands under both names."""
    told: dict[str, float] = defaultdict(float)
    for row in run.tables.arrow("program_collectives").to_pylist():
        n = row["group_size"]
        times = {"all-gather": n - 1, "permute": 1, "all-reduce": 2 * (n - 1) / n}.get(row["kind"], (n - 1) / n)
        told[row["axis"]] += row["bytes"] * row["count"] * times
    return dict(told)


def figures(one: Compiled, run: Run) -> list[dict[str, Any]]:
    """Ours and the compiler's, figure by figure."""
    of = model(run.manifest.facts["model"].value)
    terms = work(of, SEQ)
    sent = axis_bytes(terms, one.layout, ALL, BATCH, one.written)
    theirs = by_the_compiler(run)
    peak = {r["kind"]: r["padded_bytes"] for r in run.tables.arrow("memory").to_pylist()}["peak"]
    held = memory(of, one.layout, SEQ, HBM, BATCH, one.written).bytes[0]
    flops = run.tables.arrow("modules").to_pylist()[0]["flops"]
    rows = [("FLOPs of a chip", step_flops(terms, one.layout, ALL, BATCH, one.written)[0], flops)]
    rows += [
        (f"bytes over {axis}", sent[one.axes.get(axis, axis)][0], there)
        for axis, there in theirs.items()
        if "+" not in axis
    ]
    rows.append(("bytes of memory", held, peak))
    return [
        {"run": one.name, "what": what, "ours": float(ours), "compiler": float(there), "error": ours / there - 1}
        for what, ours, there in rows
    ]


def compared() -> list[dict[str, Any]]:
    """All figures of all bundled runs that the compiler finished."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store")
        return [
            {**row, **{k: float(f"{row[k]:.4g}") for k in ("ours", "compiler", "error")}}
            for one in RUNS
            for row in figures(one, store.get(ingest([FOLDER / one.name], store).run_id))
        ]


if __name__ == "__main__":
    for row in compared():
        print(json.dumps(row))
