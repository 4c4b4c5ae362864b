"""The padding tax: arithmetic on dimensions, models, programs, what-ifs and advice."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.flops import gpu_tiles, padding, rounding
from analyzers.flops.hbm_layout import hbm_padding, padded_bytes, shapes
from analyzers.flops.matmul_table import Unit
from analyzers.flops.model_changes import changed
from analyzers.flops.mxu import padded_flops
from analyzers.flops.padding import PaddingResult
from analyzers.flops.program_matmuls import products, program_excess, program_runs
from catalog import model, parameters
from catalog.models import models
from errors import QuestionError
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import MemoryTables

NOTHING = MemoryTables({})


def asked(facts: dict, tables=NOTHING, **options) -> PaddingResult:
    return padding.analyze(tables, facts_of(facts), parse_options(padding.OPTIONS, options))


@pytest.mark.parametrize(
    ("width", "value", "side", "qk", "pv"),
    [
        (64, 64, 128, 0.5, 0.5),
        (64, 64, 256, 0.25, 0.25),
        (128, 128, 128, 1, 1),
        (128, 128, 256, 0.5, 0.5),
        (192, 128, 128, 0.75, 1),
        (192, 128, 256, 0.75, 0.5),
        (256, 256, 128, 1, 1),
        (256, 256, 256, 1, 1),
    ],
)
def test_efficiency_of_heads_is_the_field_s_table(width, value, side, qk, pv):
    t = 8192
    scores, values = padded_flops(t, width, t, side), padded_flops(t, t, value, side)
    assert 2 * t * t * width / scores.headline == qk == 2 * t * t * width / scores.optimistic
    assert 2 * t * t * value / values.headline == pv
    assert 2 * t * t * value / values.optimistic == 1  # swapped, the narrow side is the moving one


@pytest.mark.parametrize(
    ("name", "small", "large"),
    [
        ("gpt-oss-20b", 13.8, 41.6),
        ("gpt-oss-120b", 14.2, 43.1),
        ("llama3.1-8b", 0, 12.5),
        ("llama3.1-70b", 0, 7.2),
        ("llama3.1-405b", 0, 4.0),
        ("gemma2-9b", 0, 0),
        ("gemma3-12b", 0, 0),
        ("gemma4-31b", 0, 0),
        ("gemma2-27b", 0, 4.7),
        ("qwen3-32b", 0, 11.8),
        ("deepseek3-671b", 4.4, 13.3),
        ("mixtral-8x7b", 0.1, 8.0),
    ],
)
def test_taxes_at_8192_tokens_are_the_field_s_table(name, small, large):
    assert [round(asked({"model": name}, seq=8192, mxu=m).tax * 100, 1) for m in ("128", "256")] == [small, large]


def cover(m: int, k: int, n: int, side: int) -> int:
    """FLOPs of a product run tile by tile: rows in eights, the stationary operand in squares, counted one by one."""
    tiles = itertools.product(range(0, m, 8), range(0, k, side), range(0, n, side))
    return sum(2 * 8 * side * side for _ in tiles)


@settings(deadline=None, max_examples=80)
@given(*[st.integers(1, 700)] * 3, st.sampled_from([128, 256]))
def test_padded_flops_are_those_of_the_tiles_that_cover_the_product(m, k, n, side):
    a, b = padded_flops(m, k, n, side)
    assert a == cover(m, k, n, side)
    assert b == min(cover(m, k, n, side), cover(n, k, m, side)) >= 2 * m * k * n


def test_the_answer_is_the_contract_and_fits_json():
    answer = asked({"model": "llama3.1-8b"}, seq=8192, mxu="256").to_dict()
    json.dumps(answer, allow_nan=False)
    assert {"tax", "tax_optimistic", "efficiency", "mxu", "matmuls", "advice"} <= set(answer)
    assert {"name", "m", "k", "n", "count", "efficiency", "share"} <= set(answer["matmuls"][0])
    assert answer["efficiency"] == pytest.approx(1 / (1 + answer["tax"]))
    assert sum(m["share"] for m in answer["matmuls"]) == pytest.approx(1)
    assert sum(m["padded_share"] for m in answer["matmuls"]) == pytest.approx(1)
    assert all(type(m[d]) is int for m in answer["matmuls"] for d in ("m", "k", "n", "count"))
    assert sum(m["padded_share"] * m["efficiency"] for m in answer["matmuls"]) == pytest.approx(answer["efficiency"])


@pytest.mark.parametrize("name", models())
@pytest.mark.parametrize("mxu", ["128", "256"])
def test_the_advised_change_gains_what_it_says_when_it_is_made(name, mxu):
    before = asked({"model": name}, mxu=mxu, seq=4096)
    for advice in before.advice:
        after = asked({"model": name}, mxu=mxu, seq=4096, **{advice.dim: advice.then})
        assert advice.gain >= 0.005
        assert 1 - (1 + after.tax) / (1 + before.tax) == pytest.approx(advice.gain)
        assert 1 - (1 + after.tax_optimistic) / (1 + before.tax_optimistic) == pytest.approx(advice.gain_optimistic)
        assert after.to_dict()["what_if"][advice.dim] == advice.then
        assert after.to_dict()["what_if"]["gain"] == pytest.approx(advice.gain)
    if not before.advice:
        assert any("No single change" in n for n in before.notes)


def test_the_sentence_carries_the_numbers():
    result = asked({"model": "llama3.1-8b"}, seq=8192, mxu="256")
    assert [a.text for a in result.advice] == [
        "13 % of matmul FLOPs run at head_dim 128 on a 256-wide MXU; head_dim 256 (heads 32 -> 16) would save 11 % of "
        "padded matmul time (5.9 % if operands may be swapped)."
    ]
    assert asked({"model": "gemma3-12b"}, seq=8192, mxu="256").advice == ()


def test_wider_heads_change_neither_weights_nor_attention_flops():
    old, new = model("gpt-oss-20b"), changed(model("gpt-oss-20b"), {"head_dim": 128})
    assert parameters(old) == parameters(new)
    assert {(a.heads, a.kv_heads, a.head_dim, a.value_head_dim) for a in new.attention} == {(32, 4, 128, 128)}
    latent = changed(model("deepseek3-671b"), {"head_dim": 256}).attention[0]
    assert (latent.heads, latent.nope_head_dim, latent.rope_head_dim, latent.value_head_dim) == (128, 192, 64, 128)
    one = changed(model("palm-540b"), {"head_dim": 512}).attention[0]
    assert (one.heads, one.kv_heads) == (24, 1)


@pytest.mark.parametrize(
    "dims", [{"head_dim": 100}, {"head_dim": 0}, {"d_model": -4}, {"vocab": 1 << 40}, {"head_dim": 1 << 20}]
)
def test_impossible_dimensions_are_refused(dims):
    with pytest.raises(QuestionError):
        asked({"model": "llama3.1-8b"}, **dims)


@pytest.mark.parametrize(
    "options",
    [
        {"seq": 0},
        {"tp": 3},
        {"batch": 0},
        {"group_block": 0, "model": "mixtral-8x7b"},
        {"buckets": "1,x"},
        {"buckets": "0"},
        {"mxu": "512"},
        {"tp": -1},
    ],
)
def test_impossible_options_are_refused(options):
    with pytest.raises(QuestionError):
        asked({"model": "llama3.1-8b"}, **options)


def test_the_unit_is_the_chip_s():
    units = {c: asked({"model": "llama3.1-8b", "chip": c}).unit for c in ("v5p", "v6e", "H100 SXM", "no such chip")}
    assert [u.side for u in units.values()] == [128, 256, None, 256]
    assert units["H100 SXM"].multiprocessors == 132
    assert asked({"model": "llama3.1-8b", "chip": "v5p"}, mxu="256").unit.side == 256
    assert asked({"model": "llama3.1-8b", "chip": "no such chip"}).assumed
    assert not asked({"model": "llama3.1-8b", "chip": "v5p"}).assumed


def test_the_run_tells_sequence_and_tensor_parallelism():
    facts = {"model": "llama3.1-8b", "chip": "v5p", "max_target_length": 4096, "parallelism": {"data": 2, "model": 8}}
    result = asked(facts)
    assert (result.choices["seq"], result.choices["tp"]) == (4096, 8)
    assert asked(facts, tp=2, seq=1024).choices["tp"] == 2


def test_nothing_known_says_what_would_help():
    with pytest.raises(QuestionError, match="model=NAME"):
        asked({})


# Programs -----------------------------------------------------------------------------------------------------------

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


def test_tiles_and_waves_of_several_products_are_weighted_by_their_flops():
    """By hand: 128 x 128 once and 100 x 200 three at a time, 1 and 3 FLOPs, on 4 multiprocessors."""
    of = (np.array(x, dtype=float) for x in ((128, 100), (128, 200), (1, 3), (1, 3)))
    _, wide, tall = gpu_tiles.tile_table(*of, 4)
    second = 3 * 128 * 256 / (100 * 200)
    assert wide.tile_efficiency == pytest.approx(4 / (2 + second))
    assert wide.wave_efficiency == pytest.approx((2 + second) / (2 / 0.25 + second / 0.75))  # 1 of 4, and 3 of 4
    second = 3 * 256 * 256 / (100 * 200)
    assert tall.tile_efficiency == pytest.approx(4 / (2 + second))
    assert tall.wave_efficiency == pytest.approx((2 + second) / (2 / 0.25 + second / 0.75))  # 1 of 4, and 6 of 8


def test_gpu_tiles_and_waves():
    assert gpu_tiles.tile_efficiency(129, 256, (128, 128)) == 129 / 256
    assert gpu_tiles.wave_efficiency(133, 132) == 133 / 264
    worst, best = gpu_tiles.padded_flops(100, 7, 200)
    assert (worst, best) == (2 * 256 * 7 * 256, 2 * 128 * 7 * 256)
    [first, *_] = gpu_tiles.tile_table(np.array([1408.0]), np.array([1536.0]), np.array([1.0]), np.array([1.0]), 132)
    assert (first.tile_efficiency, first.wave_efficiency) == (1.0, 1.0)  # 11 x 12 tiles: one whole wave
    for batch, waves in ((1, 0.5), (2, 1.0), (3, 0.75)):  # 66 tiles each: products launched together share waves
        of = (np.array([x]) for x in (1408.0, 768.0, 1.0, batch))
        [some, *_] = gpu_tiles.tile_table(*of, 132)
        assert some.wave_efficiency == waves
    assert gpu_tiles.alignment(50257, 2) == (2, 50304) and gpu_tiles.alignment(50304, 2) == (128, None)
    result = asked({"model": "gpt2-1.5b", "chip": "H100 SXM"}, vocab=50257)
    assert result.misaligned == ((50257, 2, 50304),) and result.unit == Unit(None, 132)
    assert 0 < result.tiles[0].wave_efficiency <= 1 and result.tax >= result.tax_optimistic >= 0


def test_experts_and_buckets_round_up():
    result = asked({"model": "kimi-k2-1t"}, seq=8192, group_block=128).to_dict()["expert_blocks"]
    assert (result["before"], result["after"]) == (pytest.approx(8192 * 8 / 384), 256)
    assert "no routed experts" in " ".join(asked({"model": "llama3.1-8b"}, group_block=128).notes)
    found, over = rounding.bucket_padding([1, 128, 129, 600], (128, 512))
    assert (found.before, found.after, over) == (86, 256, 0.25)
    uniform = asked({"model": "llama3.1-8b"}, seq=1024, buckets="512,1024").to_dict()["buckets"]
    assert uniform["tax"] == pytest.approx(768 / 512.5 - 1)
    requests = MemoryTables({"requests": {"prompt_tokens": [100, 200, None]}})
    served = asked({"model": "llama3.1-8b"}, requests, buckets="128,256").to_dict()["buckets"]
    assert (served["tax"], served["lengths"]) == (pytest.approx(192 / 150 - 1), "2 prompts of this run")


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
