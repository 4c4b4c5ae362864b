"""The planner's FLOPs, bytes along each axis and memory beside the TPU compiler's own, of the bundled compiled runs."""

from dataclasses import replace

import pytest

from analyzers.compiled import compiled as asked
from benchmarks.training_compiled import ALL, BATCH, PROGRAM, RUNS, SEQ, Compiled, by_the_compiler, figures
from catalog import model
from simulators.training.computed import step_flops
from simulators.training.layout import REMATS, layouts
from simulators.training.memory import memory
from simulators.training.sent import axis_bytes
from simulators.training.work import work
from tests.bundled import bundled

WITHIN = {"FLOPs": 0.01, "bytes over": 0.05, "bytes of": 0.1}


@pytest.fixture(scope="module", params=RUNS, ids=lambda r: r.name)
def compiled(request, tmp_path_factory):
    one: Compiled = request.param
    run = bundled(tmp_path_factory, one.name)
    facts = {name: fact.value for name, fact in run.manifest.facts.items()}
    assert (facts["global_batch"], facts["seq"], facts["remat"]) == (BATCH, SEQ, REMATS[int(one.layout.remat[0])])
    assert facts["chips"] == one.layout.chips[0]
    return one, run, model(facts["model"])


def test_every_figure_is_the_compilers(compiled):
    """FLOPs to a hundredth, and never more: norms, softmax and the update come on top; bytes over each axis to a
    twentieth, memory to a tenth."""
    one, run, _ = compiled
    told = figures(one, run)
    assert len(told) == 4
    for row in told:
        (within,) = [w for what, w in WITHIN.items() if row["what"].startswith(what)]
        assert abs(row["error"]) <= within, row
        assert row["error"] < 0 or "FLOPs" not in row["what"]


def test_products_of_the_program_are_ours_to_the_last_one(compiled):
    """What was written, before the compiler makes logits again."""
    one, run, of = compiled
    rows = run.tables.arrow("matmuls").to_pylist()
    products = sum(2.0 * r["m"] * r["k"] * r["n"] * r["batch"] * r["count"] for r in rows) / one.layout.chips[0]
    as_written = replace(one.written, logits_again=False)
    assert step_flops(work(of, SEQ), one.layout, ALL, BATCH, as_written)[0] == pytest.approx(products, rel=1e-12)


def test_nothing_goes_along_an_axis_that_is_not_there(compiled):
    one, run, of = compiled
    ours, theirs = axis_bytes(work(of, SEQ), one.layout, ALL, BATCH, one.written), by_the_compiler(run)
    alone = {one.axes.get(axis, axis) for axis in theirs if "+" not in axis}
    assert all((ours[axis][0] > 0) == (axis in alone) for axis in ours)
    both = sum(sent for axis, sent in theirs.items() if "+" in axis)
    assert both < 0.012 * sum(theirs.values())  # what no axis of ours has: over both at once


def test_what_did_not_fit_is_found_not_to_fit(tmp_path_factory):
    run = bundled(tmp_path_factory, "compiled-llama3.1-8b-v6e-too-large")
    told = asked.analyze(run.tables, run.manifest.facts, {}).to_dict()
    held = memory(model("llama3.1-8b"), layouts(data=4, tensor=4, micro=4, remat=2), SEQ, 1e12, BATCH, PROGRAM).bytes[0]
    assert not told["fits"] and held > told["bytes_per_chip"]["limit"]
    assert held == pytest.approx(told["bytes_per_chip"]["peak"], rel=0.1)
