"""Caches, weights and speculation by formula: against published counts and independent arithmetic."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.chips import chip
from catalog.inference import (
    BYTES,
    accepted_length,
    attention_flops,
    chip_weights_bytes,
    critical_batch,
    decode_attention_flops,
    decode_step_s,
    experts_touched,
    kv_bytes,
    kv_bytes_per_token,
    prefill_attention_flops,
    prompt_token_flops,
    spans,
    speculation_speedup,
    token_flops,
    weights_bytes,
    weights_read_bytes,
)
from catalog.models import model, models, parameters
from errors import QuestionError

KV_BYTES = {
    "Llama-3.1-8B": 131072,
    "Llama-3.1-70B": 327680,
    "Llama-3.1-405B": 516096,
    "Qwen3-32B": 262144,
    "DeepSeek-V3": 70272,
    "gpt-oss-120b": 73728,
}
V5E_BOOK = 8.2e11  # bytes/s of one TPU v5e as the scaling book rounds it


@pytest.mark.parametrize("name", KV_BYTES)
def test_cache_of_a_token_as_published(name):
    assert kv_bytes_per_token(model(name)) == KV_BYTES[name]
    assert kv_bytes_per_token(model(name), "fp8") == KV_BYTES[name] / 2


@pytest.mark.parametrize(
    "a, k, c, speedup", [(0.8, 5, 0.05, 2.9514), (0.7, 3, 0.1, 1.9485), (0.9, 7, 0.02, 4.9959), (0.8, 4, 0, 3.3616)]
)
def test_leviathan(a, k, c, speedup):
    assert speculation_speedup(a, k, c) == pytest.approx(speedup, abs=5e-5)
    assert accepted_length(a, k) == pytest.approx(sum(a**i for i in range(k + 1)))


def test_speculation_at_its_ends():
    assert accepted_length(1, 6) == 7 and accepted_length(0, 6) == 1
    assert speculation_speedup(1, 4, 0) == 5 and speculation_speedup(0, 4, 0.25) == 0.5
    for bad in ((1.1, 3, 0), (-0.1, 3, 0), (0.5, -1, 0), (0.5, 3, -1)):
        with pytest.raises(QuestionError):
            speculation_speedup(*bad)


@pytest.mark.parametrize("batch, ms", [(1, 4.98), (8, 12.13), (16, 20.30), (32, 36.65), (64, 69.33), (240, 249.09)])
def test_memory_alone_for_llama_2_13b_on_eight_v5e(batch, ms):
    """The source rounds a cache of 8,192 tokens to 6.7e9 bytes and the weights to 26e9."""
    step = decode_step_s(batch, weights_bytes=26e9, kv_bytes=6.7e9, bytes_per_s=8 * V5E_BOOK)
    assert step * 1e3 == pytest.approx(ms, abs=0.006)
    m = model("llama-2-13b")
    assert kv_bytes(m, 8192) == pytest.approx(6.7e9, rel=0.002)
    assert weights_bytes(m) == pytest.approx(26e9, rel=0.002)
    own = decode_step_s(batch, weights_bytes=weights_bytes(m), kv_bytes=kv_bytes(m, 8192), bytes_per_s=8 * V5E_BOOK)
    assert own * 1e3 == pytest.approx(ms, rel=0.003)


def test_llama_3_70b_in_int8_on_eight_v5e():
    """17.28 ms with the source's 160 kB a token, 70e9 of weights and 8.1e11 bytes/s; ours within a per cent."""
    step = decode_step_s(32, weights_bytes=70e9, kv_bytes=160e3 * 8192, bytes_per_s=8 * 8.1e11)
    assert step * 1e3 == pytest.approx(17.28, abs=0.006)
    m = model("llama-3.1-70b")
    own = decode_step_s(
        32, weights_bytes=weights_bytes(m, "int8"), kv_bytes=kv_bytes(m, 8192, "int8"), bytes_per_s=8 * 8.1e11
    )
    assert own * 1e3 == pytest.approx(17.28, rel=0.015)


def test_prefill_of_llama_3_70b_on_sixteen_v5e():
    """0.910 s at 40 % of the peak, by 2 N T with N = 70e9."""
    rate = 16 * 1.97e14 * 0.4
    rounded = 2 * 70e9 * 8192 / rate
    assert rounded == pytest.approx(0.910, abs=5e-4)
    assert prompt_token_flops(model("llama-3.1-70b")) * 8192 / rate == pytest.approx(rounded, rel=0.03)


def test_critical_batch():
    assert critical_batch(1.97e14, V5E_BOOK) == pytest.approx(240, abs=0.5)
    assert critical_batch(1.97e14, V5E_BOOK, "int8") == pytest.approx(120, abs=0.5)
    m, c = model("llama-3.1-8b"), chip("v5e")
    peak, rate = c.need("bf16_flops_per_s"), c.need("hbm_bytes_per_s")
    at = critical_batch(peak, rate)
    assert at * token_flops(m) / peak == pytest.approx(weights_read_bytes(m, at) / rate, rel=1e-9)
    with pytest.raises(QuestionError):
        critical_batch(1e12, 0)


def test_a_step_is_bound_by_the_slower_of_maths_and_weights():
    known = dict(weights_bytes=16e9, kv_bytes=1e9, bytes_per_s=1e12, flops_per_token=16e9, flops_per_s=1e14)
    assert decode_step_s(10, **known) == pytest.approx(0.01 + 0.016)
    assert decode_step_s(200, **known) == pytest.approx(0.2 + 0.032)
    assert decode_step_s(50, **known, tokens=4) == pytest.approx(0.05 + 0.032)


GEMMA = "gemma-4-31b"


@pytest.mark.parametrize("chips, sequences", [(4, 55), (8, 174)])
def test_gemma_4_31b_on_v6e_by_the_quoted_arithmetic(chips, sequences):
    """32 GB x 0.9 a chip, weights of 62.3 GB, sequences of 1,500 tokens, heads split without repetition."""
    assert int((32e9 * 0.9 * chips - 62.3e9) / kv_bytes(model(GEMMA), 1500)) == sequences
    own = int((32e9 * 0.9 * chips - weights_bytes(model(GEMMA))) / kv_bytes(model(GEMMA), 1500))
    assert sequences <= own <= sequences + 1


def test_windows_end_growth_and_heads_are_repeated():
    m = model(GEMMA)
    sliding, full = sorted(spans(m, tensor=8), key=lambda s: s.window_tokens is None)
    assert (sliding.layers, sliding.window_tokens, sliding.copies) == (50, 1024, 1.0)
    assert (full.layers, full.window_tokens, full.copies) == (10, None, 2.0)
    assert sliding.bytes(1500) == sliding.bytes(1024) == 50 * 1024 * (16 // 8) * 2 * 256 * 2
    assert full.bytes(1500) == 10 * 1500 * 1 * 2 * 512 * 2
    assert 8 * kv_bytes(m, 1500, tensor=8) - kv_bytes(m, 1500) == 10 * 1500 * 4 * 2 * 512 * 2


def test_a_latent_is_on_every_chip():
    m = model("deepseek-v3")
    assert kv_bytes(m, 1000, tensor=8) == kv_bytes(m, 1000) == 61 * (512 + 64) * 2 * 1000
    assert spans(m, tensor=8)[0].copies == 8


@pytest.mark.parametrize("name", list(models()))
@pytest.mark.parametrize("tensor", [1, 2, 4, 8, 16])
def test_weights_of_a_chip_are_an_even_part_and_what_cannot_be_split(name, tensor):
    m = model(name)
    even = weights_bytes(m) / tensor
    split, whole = (chip_weights_bytes(m, tensor=tensor, split_attention=s) for s in (True, False))
    counts = parameters(m)
    assert even - 1e-6 <= split <= whole + 1e-6
    assert whole == pytest.approx(2 * (counts.attention + (counts.total - counts.attention) / tensor))
    latent = any(a.kv_lora_rank is not None for a in m.attention)
    if not latent and all(a.kv_heads % tensor == 0 for a in m.attention):
        assert split == pytest.approx(even)


def test_key_heads_of_a_chip_bring_their_weights():
    m = model("qwen3-30b-a3b")  # 4 key heads of 128 in each of 48 layers
    kv = 48 * m.d_model * 4 * 2 * 128
    expected = (parameters(m).total - kv) / 8 + kv / 4  # on 8 chips each holds one head of four
    assert chip_weights_bytes(m, tensor=8) == pytest.approx(2 * expected)


def test_absorbed_latent_attention_does_more_than_expanded():
    m = model("deepseek-v3")
    assert decode_attention_flops(m, 1000) == 61 * 2 * 128 * (2 * 512 + 64) * 1000
    assert decode_attention_flops(m, 1000) > attention_flops(m, 1000)
    dense = model("llama-3.1-8b")
    assert decode_attention_flops(dense, 1000) == attention_flops(dense, 1000) == 32 * 2 * 32 * 256 * 1000


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(["llama-3.1-8b", GEMMA, "gpt-oss-20b"]), st.integers(0, 3000), st.integers(1, 3000))
def test_attention_of_a_prompt_is_the_sum_over_its_tokens(name, cached, tokens):
    m = model(name)
    total = 0.0
    positions = np.arange(cached + 1, cached + tokens + 1)
    for a in m.attention:
        seen = positions if a.span == "full" or a.window_tokens is None else np.minimum(positions, a.window_tokens)
        total += 2.0 * a.heads * (a.head_dim + a.value_head_dim) * seen.sum()
    assert prefill_attention_flops(m, tokens, cached) == pytest.approx(total, rel=1e-12)


def test_experts_touched():
    block = next(f for f in model("mixtral-8x7b").feedforward if f.experts)
    assert experts_touched(block, 1) == pytest.approx(2)
    assert experts_touched(block, 2) == pytest.approx(8 * (1 - 0.75**2))
    assert experts_touched(block, 1e6) == pytest.approx(8)
    m = model("mixtral-8x7b")
    assert weights_read_bytes(m, 1e9) == pytest.approx(weights_bytes(m) - 2 * m.vocab * m.d_model)


def test_what_is_not_known_is_refused():
    with pytest.raises(QuestionError, match="expected one of"):
        kv_bytes(model("llama-3.1-8b"), 10, "bf17")
    for function in (spans, chip_weights_bytes):
        with pytest.raises(QuestionError):
            function(model("llama-3.1-8b"), "bf16", 0)
    assert set(BYTES.values()) == {4, 2, 1, 0.5}
