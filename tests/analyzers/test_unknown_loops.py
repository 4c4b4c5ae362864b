"""Programs with loops of which nothing tells how often they run: no sum is claimed, and the answers say so."""

import pytest

from analyzers.compiled import compiled
from analyzers.flops import padding
from analyzers.flops.executed import extra, recomputed_share
from analyzers.flops.program_matmuls import program_excess, unknown_programs
from analyzers.ranks import collectives
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import MemoryTables

FACTS = {"chip": "TPU v5p", "chips": 1}


def programs(flops, count, ran=True, **more):
    """Two programs, 0 known and 1 with `flops`; both ran twice, 1 only if it `ran`."""
    ops = {
        "capture": [0, 0],
        "op_id": [0, 1],
        "device": [0, 0],
        "host": ["h", "h"],
        "line": ["XLA Modules"] * 2,
        "role": ["module"] * 2,
        "module": ["jit_a", "jit_b"],
        "program": [0, 1],
        "op": ["jit_a(0)", "jit_b(1)"],
        "category": ["other"] * 2,
        "count": [2, 2 if ran else 0],
        "total_ns": [1e6, 1e6],
        "self_ns": [1e6, 1e6],
    }
    return MemoryTables(
        {
            "modules": {
                "capture": [0, 0],
                "program": [0, 1],
                "name": ["jit_a", "jit_b"],
                "flops": [100.0, flops],
                "remat_flops": [10.0, 0.0],
                "bytes": [1.0, None],
                "instructions": [5, 5],
            },
            "matmuls": {
                "capture": [0],
                "program": [1],
                "op": ["dot"],
                "m": [7],
                "k": [8],
                "n": [9],
                "batch": [1],
                "count": [count],
                "convolution": [False],
            },
            "ops": ops,
            **more,
        }
    )


@pytest.mark.parametrize(("flops", "ran", "names"), [(50.0, True, ()), (None, True, ("jit_b",)), (None, False, ())])
def test_the_programs_that_ran_and_have_no_sum_are_named(flops, ran, names):
    tables = programs(flops, None if flops is None else 1, ran)
    assert unknown_programs(tables) == names
    told = extra(tables, facts_of(FACTS))
    assert told.unknown == names and (told.recomputed > 0) == (not names)


def test_padding_says_what_counts_once():
    def ask(tables):
        return padding.analyze(tables, facts_of(FACTS), parse_options(padding.OPTIONS, {"source": "program"}))

    assert any("jit_b are not known" in n for n in ask(programs(None, None)).notes)
    assert not any("not known" in n for n in ask(programs(50.0, 1)).notes)


def test_compiled_and_collectives_say_what_counts_once():
    rows = {"program": [0], "op": ["r"], "kind": ["all-reduce"], "bytes": [64.0], "count": [None], "group_size": [4]}
    tables = MemoryTables(
        {
            "modules": {"program": [0], "name": ["train"], "flops": [None], "instructions": [5]},
            "matmuls": {"program": [0], "op": ["d"], "m": [8], "k": [8], "n": [8], "count": [None]},
            "program_collectives": rows,
            "ops": {
                "op_id": [0],
                "op": ["f"],
                "role": ["compute"],
                "category": ["fusion"],
                "count": [None],
                "flops": [5.0],
                "bytes": [7.0],
            },
        }
    )
    facts = facts_of(FACTS | {"outcome": "compiled"})
    told = compiled.analyze(tables, facts, {})
    assert any("train are not known" in n for n in told.notes)
    told = collectives.analyze(tables, facts, {})
    assert any("counted once" in n for n in told.notes)


def test_a_compiled_program_counts_as_often_as_a_step_runs_it():
    modules = {"program": [0, 1], "name": ["layer", "head"], "flops": [2e6, 2e6], "remat_flops": [1e6, 0.0]}
    modules |= {"capture": [0, 0], "instructions": [5, 5], "runs_per_step": [9, 1]}
    matmuls = {"capture": [0, 0], "program": [0, 1], "op": ["dot"] * 2, "m": [100] * 2, "k": [100] * 2, "n": [100] * 2}
    matmuls |= {"batch": [1, 1], "count": [9, 1], "convolution": [False] * 2}
    tables = MemoryTables({"modules": modules, "matmuls": matmuls})
    assert recomputed_share(tables) == pytest.approx(9e6 / 20e6)
    excess = program_excess(tables, 128)
    assert excess.program_flops == excess.useful_flops == 20e6
    modules["flops"] = [4e6, 4e6]  # half of it in no matrix product
    assert program_excess(MemoryTables({"modules": modules, "matmuls": matmuls}), 128).program_flops == 40e6
