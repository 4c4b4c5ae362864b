"""The products of a forward pass: what they add up to, and how parallelism divides them."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog import model, parameters
from catalog.flops import forward_flops_per_token
from catalog.matmuls import matmuls, pairs_fraction, valid_tp
from catalog.models import models
from errors import QuestionError


@pytest.mark.parametrize("name", models())
@pytest.mark.parametrize("batch", [1, 3])
def test_products_with_weights_do_two_flops_per_active_parameter_and_token(name, batch):
    m, seq = model(name), 2048
    weights = [p for p in matmuls(m, seq, 1, batch) if p.name[:2] not in ("qk", "pv")]
    flops = sum(p.useful_flops for p in weights)
    assert flops == pytest.approx(2 * parameters(m).active_matmul * seq * batch, rel=1e-12)


@pytest.mark.parametrize("name", models())
def test_attention_needs_the_pairs_that_causality_and_windows_leave(name):
    """Counted pair by pair (i attends j): half a pair for the diagonal, as T^2 / 2 does."""
    m, seq = model(name), 16384
    expected = 0.0
    for a in m.attention:
        w = min(a.window_tokens or seq, seq)
        pairs = {"full": seq * seq / 2, "sliding": seq * w - w * w / 2, "chunked": seq * w / 2}[a.span]
        expected += 2 * a.heads * (a.head_dim + a.value_head_dim) * pairs
    found = sum(p.useful_flops for p in matmuls(m, seq) if p.name[:2] in ("qk", "pv"))
    assert found == pytest.approx(expected, rel=1e-12)


def test_a_small_window_is_counted_pair_by_pair():
    a = replace(model("gpt-oss-20b").attention[0], span="sliding", window_tokens=4)
    seq = 64
    inside = sum(1 for i in range(seq) for j in range(seq) if 0 <= i - j < 4)
    assert pairs_fraction(a, seq) == ("local", pytest.approx((inside - 2) / seq**2, abs=1e-12))
    assert pairs_fraction(a, 4) == ("global", 0.5)
    assert pairs_fraction(replace(a, span="chunked"), seq) == ("chunk", 4 / (2 * seq))


def test_a_last_chunk_that_is_short_is_counted_pair_by_pair():
    a, seq = replace(model("llama4-17b-16e").attention[0], span="chunked", window_tokens=4), 10
    inside = sum(1 for i in range(seq) for j in range(i + 1) if i // 4 == j // 4)
    assert pairs_fraction(a, seq) == ("chunk", pytest.approx((inside - seq / 2) / seq**2, abs=1e-12))


@pytest.mark.parametrize("seq", [1000, 12_000])
@pytest.mark.parametrize("name", models())
def test_the_products_of_a_pass_do_what_its_flops_are_counted_as(name, seq):
    m = model(name)
    assert sum(p.useful_flops for p in matmuls(m, seq)) / seq == pytest.approx(forward_flops_per_token(m, seq))


@pytest.mark.parametrize("name", ["llama3.1-8b", "mixtral-8x7b", "gemma4-26b", "deepseek3-671b", "palm-540b"])
@pytest.mark.parametrize("tp", [2, 4, 8])
def test_all_devices_together_do_the_whole_and_what_is_replicated(name, tp):
    """Whole on every device: the router, latent down-projections, and the key heads that devices share."""
    m = model(name)
    one, many = ({}, {})
    for products, into in ((matmuls(m, 4096), one), (matmuls(m, 4096, tp), many)):
        for p in products:
            into[p.name] = into.get(p.name, 0.0) + p.useful_flops
    for name_, whole in one.items():
        replicated = {"router": tp, "q_a": tp, "kv_a": tp}.get(name_, 1)
        if name_ in ("k", "v"):
            held = sum(max(a.kv_heads // tp, 1) * a.head_dim for a in m.attention if name_ == "k" or not a.shared_kv)
            full = sum(a.kv_heads * a.head_dim for a in m.attention if name_ == "k" or not a.shared_kv)
            replicated = held * tp / full
        assert many[name_] * tp == pytest.approx(whole * replicated, rel=1e-12), name_


def test_a_vocabulary_that_does_not_divide_fills_up_the_last_device():
    m = replace(model("llama3.1-8b"), vocab=50257)
    head = matmuls(m, 2048, 8)[-1]
    assert (head.name, head.n) == ("lm_head", 6283)
    assert head.useful_flops * 8 == pytest.approx(2 * 2048 * m.d_model * 50257)


@pytest.mark.parametrize("tp", [3, 64])
def test_heads_that_do_not_divide_are_refused(tp):
    with pytest.raises(QuestionError, match="divide"):
        matmuls(model("llama3.1-8b"), 2048, tp)
    assert not valid_tp(model("llama3.1-8b"), tp)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(sorted(models())), st.integers(-1, 70), st.integers(-1, 3000), st.integers(-1, 4))
def test_any_question_is_answered_or_refused_kindly(name, tp, seq, batch):
    try:
        found = matmuls(model(name), seq, tp, batch)
    except QuestionError:
        assert min(tp, seq, batch) < 1 or not valid_tp(model(name), tp)
        return
    assert valid_tp(model(name), tp)
    assert all(p.m > 0 and p.k > 0 and p.n > 0 and p.count > 0 and 0 < p.pairs_fraction <= 1 for p in found)
