"""The padding tax: arithmetic on dimensions, models, programs, what-ifs and advice."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.flops import gpu_tiles, rounding
from analyzers.flops.matmul_table import Unit
from analyzers.flops.model_changes import changed
from analyzers.flops.mxu import padded_flops
from catalog import model, parameters
from catalog.models import models
from errors import QuestionError
from runs.tables import MemoryTables
from tests.analyzers.padded import asked


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


def test_a_chip_that_is_neither_tpu_nor_gpu_is_not_taken_for_a_gpu():
    result = asked({"model": "llama3.1-8b", "chip": "Gaudi 3"})
    assert result.assumed and result.unit == Unit(256) and not result.tiles
    assert result.notes[0].startswith("How Gaudi 3 multiplies is not known here: figured for an MXU of 256 x 256")
    assert not any("GPU" in note for note in result.notes)
    for name in ("L4", "MI300X"):
        assert asked({"model": "llama3.1-8b", "chip": name}).unit.side is None


def test_the_run_tells_sequence_and_tensor_parallelism():
    facts = {"model": "llama3.1-8b", "chip": "v5p", "max_target_length": 4096, "parallelism": {"data": 2, "model": 8}}
    result = asked(facts)
    assert (result.choices["seq"], result.choices["tp"]) == (4096, 8)
    assert asked(facts, tp=2, seq=1024).choices["tp"] == 2


def test_nothing_known_says_what_would_help():
    with pytest.raises(QuestionError, match="model=NAME"):
        asked({})


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
