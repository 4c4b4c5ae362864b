"""FLOPs per token: against arithmetic written out by hand, and the identities that hold between conventions."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog import model, parameters
from catalog.flops import CONVENTIONS, NAMES, flops_per_token, forward_flops_per_token, seen_tokens
from catalog.models import Attention, models
from errors import QuestionError


def layer(span: str, window: int | None = None) -> Attention:
    return Attention(name=span, span=span, heads=1, kv_heads=1, head_dim=1, value_head_dim=1, window_tokens=window)


def test_a_dense_model_by_hand():
    """Llama 2 7B, T 4096: 6 (4 d^2 + 3 d f) L + 6 d V; attention 12 L d T/2 and 12 L d T; PaLM adds the table."""
    d, f, layers, vocab, t = 4096, 11008, 32, 32000, 4096
    weights = 6 * (4 * d * d + 3 * d * f) * layers + 6 * d * vocab
    expected = {
        "causal": weights + 12 * layers * d * t / 2,
        "noncausal": weights + 12 * layers * d * t,
        "6n": weights,
        "6n_total": weights + 6 * d * vocab,
        "palm": weights + 6 * d * vocab + 12 * layers * d * t,
        "hardware_full_remat": (weights + 6 * layers * d * t) * 4 / 3,
        "lora": weights * 4 / 6,
        "windows_halved": weights + 6 * layers * d * t,
        "megatron": weights + 6 * layers * d * t,
    }
    counted = {name: flops_per_token(model("llama2-7b"), t, name).total for name in NAMES}
    assert counted == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("span, window", [("full", None), ("sliding", 96), ("chunked", 96), ("sliding", 5000)])
def test_tokens_seen_are_counted_as_areas(span, window):
    """Against a sum over every token: earlier tokens seen, itself as half (an area, not a staircase)."""
    t = 1000
    at = np.arange(t) + 0.5
    seen = {"full": at, "sliding": np.minimum(at, window or t), "chunked": at % (window or t)}[span]
    assert seen_tokens(layer(span, window), t) == pytest.approx(seen.mean(), rel=1e-6)


def test_a_step_of_deepseek2_16b_as_the_fact_sheet_has_it():
    """24 sequences of 2,048 tokens on a device are 764.667 TFLOPs."""
    tokens = 24 * 2048
    assert round(flops_per_token(model("deepseek2-16b"), 2048).total * tokens / 1e12, 3) == 764.667


def test_gpt_oss_120b_with_and_without_halved_windows():
    counted = {name: flops_per_token(model("gpt-oss-120b"), 8192, name).total for name in NAMES}
    assert round(counted["causal"] / 1e9, 3) == 34.523
    assert round(counted["windows_halved"] / 1e9, 3) == 34.467


def test_megatron_counts_prediction_layers_and_no_router():
    """DeepSeek-V3, T 4096: 259.99 GFLOPs a token with one prediction layer, 250.45 exact causal without."""
    v3 = model("deepseek3-671b")
    megatron, causal = flops_per_token(v3, 4096, "megatron"), flops_per_token(v3, 4096)
    assert round(megatron.total / 1e9, 2) == 259.99
    assert round(causal.total / 1e9, 2) == 250.45
    routers = 6 * 58 * 7168 * 256
    assert megatron.total - megatron.mtp == pytest.approx(causal.total - routers, rel=1e-12)
    attention, block = v3.attention[0], v3.feedforward[-1]
    met = attention.params(7168) + block.params(7168)[1] - 7168 * 256 + 2 * 7168**2 + 7168 * 129280
    assert megatron.mtp == pytest.approx(6 * met + 6 * 128 * (192 + 128) * 2048, rel=1e-12)


def test_lora_of_llama_70b_is_4n():
    assert round(flops_per_token(model("llama3.1-70b"), 4096, "lora").total / 1e9, 1) == 278.0


@pytest.mark.parametrize("name", list(models()))
@pytest.mark.parametrize("seq", [1, 128, 8192, 131072])
def test_what_must_hold_for_every_model(name, seq):
    m = model(name)
    counts = {c.name: flops_per_token(m, seq, c.name) for c in CONVENTIONS}
    for c in counts.values():
        assert sum(c.parts().values()) == c.total > 0
        assert min(c.parts().values()) >= 0
        assert c.weights + c.attention + c.mtp + c.recomputation == pytest.approx(c.total, rel=1e-12)
    total = {k: c.total for k, c in counts.items()}
    assert total["6n"] <= total["windows_halved"] <= total["causal"] <= total["noncausal"]
    assert total["causal"] == pytest.approx(counts["6n"].weights + counts["causal"].attention, rel=1e-12)
    assert total["6n_total"] == pytest.approx(6 * max(parameters(m).total, parameters(m).active_matmul), rel=1e-12)
    assert forward_flops_per_token(m, seq) == pytest.approx(total["causal"] / 3, rel=1e-12)
    assert forward_flops_per_token(m, seq, "hardware_full_remat") == pytest.approx(total["causal"] / 3, rel=1e-12)
    assert forward_flops_per_token(m, seq, "lora") == pytest.approx(total["6n"] / 3, rel=1e-12)


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(["sliding", "chunked"]), st.integers(1, 10**6), st.integers(1, 10**6))
def test_a_window_sees_no_more_than_everything_and_no_more_than_itself(span, window, seq):
    seen = seen_tokens(layer(span, window), seq)
    assert 0 < seen <= min(seq / 2, window) * (1 + 1e-12)
    assert seen_tokens(layer(span, seq), seq) == seq / 2


def test_nonsense_is_told():
    with pytest.raises(QuestionError, match="no FLOP convention 'causl'; expected one of causal, noncausal"):
        flops_per_token(model("llama2-7b"), 4096, "causl")
    with pytest.raises(QuestionError, match="a sequence of 0 tokens"):
        flops_per_token(model("llama2-7b"), 0)


def test_a_sliding_layer_that_states_no_window_attends_to_everything_by_every_convention():
    m = model("llama2-7b")
    open_ended = replace(m, attention=tuple(replace(a, span="sliding", window_tokens=None) for a in m.attention))
    for name in NAMES:
        assert flops_per_token(open_ended, 4096, name) == flops_per_token(m, 4096, name)
