"""Padding of compiled programs: their products as often as they ran, and their buffers in memory."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.flops.hbm_layout import hbm_padding, padded_bytes, shapes
from analyzers.flops.program_matmuls import products, program_excess, program_runs
from app.questions.padding.words import verdict
from errors import QuestionError
from runs.tables import MemoryTables
from tests.analyzers.padded import NOTHING, asked
from tests.bundled import bundled

# Programs -----------------------------------------------------------------------------------------------------------

CHIPS = {"none": {}, "v6e": {"chip": "v6e"}}
SMALL, LARGE = 2.0 * 64 * 128 * 256, 2.0 * 512 * 512 * 512


def programs(line: bool = True, **ops) -> MemoryTables:
    """Program 7 runs three times on each of two devices, program 8 (half of its FLOPs in products) once, 9 never."""
    tables = {
        "modules": {
            "capture": [0, 0, 0],
            "program": [7, 8, 9],
            "name": ["step", "eval", "idle"],
            "flops": [SMALL * 4, LARGE * 2, 1e15],
        },
        "matmuls": {
            "capture": [0] * 4,
            "program": [7, 8, 9, 8],
            "op": ["dot.1", "dot.2", "dot.3", "conv"],
            "m": [64, 512, 1, 9],
            "k": [128, 512, 1, 9],
            "n": [256, 512, 1, 9],
            "batch": [1, 1, 1, 1],
            "count": [4, 1, 1, 1],
            "dtype": ["bf16"] * 4,
            "remat": [False] * 4,
            "source": ["a/b.py:3", "", "", ""],
            "convolution": [False, None, False, True],
        },
    }
    if line:
        tables["ops"] = {
            "capture": [0] * 4,
            "op_id": [0, 1, 2, 3],
            "device": [0, 1, 0, 0],
            "role": ["module"] * 3 + ["compute"],
            "program": [7, 7, 8, 7],
            "count": [3, 3, 1, 12],
            "category": ["other"] * 3 + ["matmul"],
            "flops": [None, None, None, SMALL],
            "total_ns": [90.0, 90.0, 10.0, 60.0],
            "self_ns": [0.0, 0.0, 0.0, 60.0],
        }
    else:
        tables["ops"] = {
            "capture": [0] * 3,
            "op_id": [0, 1, 2],
            "device": [0, 1, 0],
            "role": ["compute"] * 3,
            "program": [7, 7, 8],
            "count": [12, 12, 1],
            "category": ["matmul", "matmul", "fusion"],
            "flops": [SMALL, SMALL, LARGE * 2],
            "total_ns": [30.0, 30.0, 140.0],
            "self_ns": [30.0, 30.0, 140.0],
        }
        tables["ops"] |= ops
    return MemoryTables(tables)


@pytest.mark.parametrize("line", [True, False])
def test_programs_count_as_often_as_they_ran(line):
    tables = programs(line)
    runs, _ = program_runs(tables)
    assert dict(zip(runs["program"], runs["runs"], strict=True)) == {7: 6, 8: 1, 9: 0}
    found = products(tables).set_index("name")
    assert found["count"].to_dict() == {"b.py:3": 24, "dot.2": 1}
    excess = program_excess(tables, 256)
    padded = 24 * 2.0 * 64 * 256 * 256 + LARGE
    assert (excess.useful_flops, excess.padded_flops) == (24 * SMALL + LARGE, padded)
    assert excess.padded_flops_optimistic == padded  # swapped: ceil8(256) x 256 x ceil256(64) pads as much
    assert excess.program_flops == 6 * SMALL * 4 + 2 * LARGE
    assert excess.padded_share == pytest.approx((padded - 24 * SMALL - LARGE) / excess.program_flops)


def test_a_program_numbered_anew_is_known_by_its_name():
    tables = programs(False, program=[107, 107, 8], module=["step", "step", "eval"])
    runs, _ = program_runs(tables)
    assert dict(zip(runs["program"], runs["runs"], strict=True)) == {7: 6, 8: 1, 9: 0}


def test_compiled_programs_count_once():
    ops = {"op_id": [0], "role": ["compute"], "count": [3], "flops": [5.0], "category": ["matmul"]}  # no time
    rows = {"m": [8, 8], "k": [128, 64], "n": [128, 128], "count": [1, 3], "op": ["a", "b"]}
    tables = MemoryTables({"matmuls": rows, "ops": ops})
    result = asked({"chip": "v5p"}, tables)
    assert result.source == "program" and result.rows["count"].to_list() == [3, 1]
    assert result.tax == pytest.approx((8 * 128 * 128 * 4) / (8 * 128 * 128 + 3 * 8 * 64 * 128) - 1)
    assert program_excess(NOTHING, 128) is None


def test_a_run_with_programs_answers_from_them_unless_a_model_is_asked():
    facts = {"model": "llama3.1-8b", "chip": "v6e"}
    assert asked(facts, programs()).source == "program"
    assert asked(facts, programs(), source="model").source == "model"
    assert asked(facts, programs(), head_dim=256).source == "model"
    with pytest.raises(QuestionError, match="as it was compiled"):
        asked(facts, programs(), source="program", head_dim=256)
    with pytest.raises(QuestionError, match="no program"):
        asked(facts, source="program")
    assert asked(facts, programs()).time_share == 1.0
    assert asked(facts, programs(False)).time_share == pytest.approx(0.3)


def test_heads_of_a_program_are_merged_and_other_widths_filled():
    tables = MemoryTables(
        {
            "matmuls": {
                "op": ["qk", "pv", "up"],
                "m": [512, 512, 512],
                "k": [64, 512, 512],
                "n": [512, 64, 500],
                "batch": [8, 8, 1],
                "count": [1, 1, 1],
            }
        }
    )
    result = asked({"chip": "v5p"}, tables)
    heads, width = result.advice
    assert (heads.dim, heads.now, heads.then) == ("head_dim", 64, 128)
    useful, up, padded_up = 2 * 8 * 2 * 512 * 512 * 64, 2.0 * 512 * 512 * 500, 2.0 * 512 * 512 * 512
    assert heads.gain == pytest.approx(1 - (useful + padded_up) / (2 * useful + padded_up))
    assert (width.dim, width.now, width.then) == ("width", 500, 512)
    assert width.gain == pytest.approx(1 - (useful + up) / (useful + padded_up))
    assert "heads of 128, 1/2 as many, would save" in heads.text and "useful maths" in width.text


# Memory, GPUs, experts, buckets -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("f32[8,64]{1,0:T(8,128)}", 8 * 128 * 4),
        ("bf16[8,64]{1,0:T(8,128)(2,1)}", 8 * 128 * 2),
        ("bf16[64,8]{0,1:T(8,128)(2,1)}", 8 * 128 * 2),
        ("f32[4,512,500]{1,0,2:T(4,128)}", 500 * 4 * 512 * 4),
        ("bf16[4,512,4,125]{1,3,2,0:T(8,128)(2,1)}", 4 * 4 * 128 * 512 * 2),
        ("f32[]{:T(128)}", 512),
        ("s8[4194304]{0:T(1024)(128)(4,1)}", 4194304),
        ("bf16[1,300]{1,0:T(1,128)(2,1)}", 2 * 384 * 2),
        ("s4[16,100]{1,0:T(8,128)(8,1)E(4)}", 16 * 128 // 2),
        ("pred[512,512]{0,1:T(8,128)(4,1)}", 512 * 512),
    ],
)
def test_layouts_pad_to_whole_tiles(text, taken):
    [found] = shapes(f"{text} x f32[9,9]{{1,0}}")
    assert found.padded_bytes == taken >= found.bytes
    assert shapes(text.replace("}", "S(1)}")) == []  # not in device memory


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 40), min_size=2, max_size=4), st.randoms(), st.sampled_from([(8, 128), (4, 16), (2, 2)]))
def test_padded_bytes_are_those_of_every_tile_that_is_touched(dims, random, tile):
    order = list(range(len(dims)))
    random.shuffle(order)
    physical = [dims[d] for d in reversed(order)]
    tiles = math.prod(physical[:-2]) * -(-physical[-2] // tile[0]) * -(-physical[-1] // tile[1])
    assert padded_bytes(tuple(dims), tuple(order), (tile,), 32) == tiles * math.prod(tile) * 4


def test_hbm_padding_prefers_buffers_at_the_peak():
    memory = {
        "kind": ["argument", "peak_buffer", "peak_buffer", "bytes_in_use"],
        "name": ["w", "a", "b", "x"],
        "bytes": [100, 1000, 10, 5],
        "padded_bytes": [400, 2000, 10, None],
    }
    found = hbm_padding(MemoryTables({"memory": memory}))
    assert (found.bytes, found.padded_bytes, [b.name for b in found.worst]) == (1010, 2010, ["a"])
    assert hbm_padding(NOTHING) is None
    table = MemoryTables(
        {
            "matmuls": {
                "m": [8],
                "k": [64],
                "n": [8],
                "count": [1],
                "layout": ["f32[8,64]{1,0:T(8,128)} x f32[64,128]{1,0:T(8,128)} -> f32[8]{0}"],
            }
        }
    )
    assert asked({"chip": "v5p"}, table).hbm.tax == pytest.approx((1024 + 64 * 128) / (512 + 64 * 128) - 1)


def test_hbm_bytes_are_those_of_one_program_in_one_capture():
    """Two captures of two programs: a device never holds what the four of them add up to."""
    rows = [
        (capture, program, "peak_buffer", size, size + 10 * program)
        for capture in (0, 1)
        for program, size in ((1, 100), (2, 300))
    ]
    names = ("capture", "program", "kind", "bytes", "padded_bytes")
    memory = {name: [row[i] for row in rows] for i, name in enumerate(names)} | {"name": ["b"] * 4, "shape": ["s"] * 4}
    modules = {"capture": [0, 0, 1, 1], "program": [1, 2, 1, 2], "name": ["jit_init", "jit_train"] * 2}
    found = hbm_padding(MemoryTables({"memory": memory, "modules": modules}))
    assert (found.bytes, found.padded_bytes) == (300, 320)
    assert found.counted == "buffers alive at the peak of jit_train" and len(found.worst) == 1


@pytest.mark.parametrize(("facts", "side"), [({}, None), ({"chip": "Radeon Graphics"}, None), ({"chip": "v6e"}, 256)])
def test_kernels_that_were_launched_ran_on_no_tpu(facts, side):
    """A trace of a GPU that no input names, or by a name that the catalogue lacks, is not held against a TPU's unit."""
    tables = MemoryTables({"launches": {"capture": [0], "device": [0]}, "matmuls": {"m": [8], "k": [128], "n": [128]}})
    found = asked(facts, tables)
    assert (found.unit.side, found.assumed) == (side, False)
    assert asked({}, MemoryTables({"matmuls": {"m": [8], "k": [128], "n": [128]}})).unit.side == 256


def test_a_model_on_a_chip_that_nobody_names_would_be_padded():
    said = {chip: verdict(asked({"model": "llama3.1-405b", **chip_of}, NOTHING)) for chip, chip_of in CHIPS.items()}
    assert said["none"].startswith("On an MXU of 256 x 256, padding would add ")
    assert said["v6e"].startswith("On an MXU of 256 x 256, padding adds ")


@pytest.mark.parametrize(("name", "told"), [("training", "as their HLO holds them"), ("pytorch", "of their operators")])
def test_where_products_are_told_is_said_as_it_is(tmp_path_factory, name, told):
    """Nothing that PyTorch runs has an HLO, or a compiler that prints it."""
    run = bundled(tmp_path_factory, name)
    notes = asked(run.manifest.facts, run.tables).notes
    assert any(told in note for note in notes)
    assert any("compiler prints" in note for note in notes) == (name == "training")
