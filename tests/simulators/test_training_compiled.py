"""The planner's FLOPs, bytes along each axis and memory beside the TPU compiler's own, of the bundled compiled runs.

What the compiler chose for one program stands in `RUNS`, each a way of writing the step: its tables show it. The
program keeps 32-bit weights and both moments, never sums over tensor parallelism by halves, and multiplies the scores
of whole blocks of queries.
"""

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np
import pytest

from analyzers.compiled import compiled as asked
from catalog import model
from simulators.training.computed import step_flops
from simulators.training.layout import REMATS, Layouts, layouts
from simulators.training.memory import memory
from simulators.training.sent import axis_bytes
from simulators.training.work import work
from simulators.training.written import XLA, Written
from tests.bundled import bundled

PROGRAM = replace(
    XLA, recipe="float32", dealt_state=False, sequence_parallel=False, all_pairs=True, head_gradient_bytes=4.0
)
WINDOWED = replace(PROGRAM, scattered="windowed", head_scattered="windowed", head_width_bytes=4.0)
"""Products with weights that fsdp deals out are cut into turns; the projection's gradient comes in 32 bits."""
SUMMED = replace(PROGRAM, scattered="summed", head_scattered="summed", logits_again=True)
"""Gradients outside of experts are summed whole over fsdp; the logits are made twice."""


@dataclass(frozen=True)
class Compiled:
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
BATCH, SEQ, ALL = 16, 4096, np.ones(1)
RING = {"all-gather": lambda n: n - 1, "permute": lambda n: 1.0, "all-reduce": lambda n: 2 * (n - 1) / n}


@pytest.fixture(scope="module", params=RUNS, ids=lambda r: r.name)
def compiled(request, tmp_path_factory):
    one: Compiled = request.param
    run = bundled(tmp_path_factory, one.name)
    facts = {name: fact.value for name, fact in run.manifest.facts.items()}
    assert (facts["global_batch"], facts["seq"], facts["remat"]) == (BATCH, SEQ, REMATS[int(one.layout.remat[0])])
    assert facts["chips"] == one.layout.chips[0]
    return one, run, model(facts["model"])


def by_the_compiler(run) -> dict[str, float]:
    """Bytes that a chip sends along each axis, by the compiler's table: of gathers the part that it has, of others the
    array."""
    told: dict[str, float] = defaultdict(float)
    for row in run.tables.arrow("program_collectives").to_pylist():
        times = RING.get(row["kind"], lambda n: (n - 1) / n)(row["group_size"])
        told[row["axis"]] += row["bytes"] * row["count"] * times
    return dict(told)


def test_flops_are_the_compilers_to_a_hundredth(compiled):
    one, run, of = compiled
    ours = step_flops(work(of, SEQ), one.layout, ALL, BATCH, one.written)[0]
    theirs = run.tables.arrow("modules").to_pylist()[0]["flops"]
    assert ours == pytest.approx(theirs, rel=0.01) and ours < theirs  # norms, softmax and the update come on top


def test_products_of_the_program_are_ours_to_the_last_one(compiled):
    """What was written, before the compiler makes logits again."""
    one, run, of = compiled
    rows = run.tables.arrow("matmuls").to_pylist()
    products = sum(2.0 * r["m"] * r["k"] * r["n"] * r["batch"] * r["count"] for r in rows) / one.layout.chips[0]
    as_written = replace(one.written, logits_again=False)
    assert step_flops(work(of, SEQ), one.layout, ALL, BATCH, as_written)[0] == pytest.approx(products, rel=1e-12)


def test_bytes_along_each_axis_are_the_compilers_to_a_twentieth(compiled):
    one, run, of = compiled
    ours = axis_bytes(work(of, SEQ), one.layout, ALL, BATCH, one.written)
    theirs = by_the_compiler(run)
    alone = {axis: sent for axis, sent in theirs.items() if "+" not in axis}
    for axis, sent in alone.items():
        assert ours[one.axes.get(axis, axis)][0] == pytest.approx(sent, rel=0.05), axis
    assert sum(theirs.values()) - sum(alone.values()) < 0.012 * sum(theirs.values())  # over both axes at once
    silent = set(ours) - {one.axes.get(axis, axis) for axis in alone}
    assert all(ours[axis][0] == 0 for axis in silent)


def test_memory_is_the_compilers_to_a_tenth(compiled):
    one, run, of = compiled
    held = memory(of, one.layout, SEQ, 1e12, BATCH, one.written).bytes[0]
    rows = {r["kind"]: r["padded_bytes"] for r in run.tables.arrow("memory").to_pylist()}
    assert held == pytest.approx(rows["peak"], rel=0.1)


def test_what_did_not_fit_is_found_not_to_fit(tmp_path_factory):
    run = bundled(tmp_path_factory, "compiled-llama3.1-8b-v6e-too-large")
    told = asked.analyze(run.tables, run.manifest.facts, {}).to_dict()
    held = memory(model("llama3.1-8b"), layouts(data=4, tensor=4, micro=4, remat=2), SEQ, 1e12, BATCH, PROGRAM).bytes[0]
    assert not told["fits"] and held > told["bytes_per_chip"]["limit"]
    assert held == pytest.approx(told["bytes_per_chip"]["peak"], rel=0.1)
