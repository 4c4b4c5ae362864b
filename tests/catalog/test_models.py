import json
from dataclasses import replace

import pytest

from catalog import entry, model, models, parameters
from catalog.models import SPANS, Attention, FeedForward, Model

MODELS = list(models().values())


@pytest.mark.parametrize(
    "name, total, active",
    [
        ("llama3.1-8b", 8_029_995_008, 7_504_658_432),  # 8.03 B with its 266,240 norm weights
        ("llama2-7b", 6_738_149_376, 6_607_077_376),
        ("mixtral-8x7b", 46_702_526_464, 12_748_587_008),
        ("deepseek3-671b", 671_025_397_760, 36_624_596_992),
        ("gpt-oss-120b", 116_788_838_400, 5_131_100_160),
    ],
)
def test_parameters_are_those_of_the_published_models(name, total, active):
    p = parameters(model(name))
    assert (p.total, p.active_matmul) == (total, active)


@pytest.mark.parametrize(
    "name, billions",
    [
        ("palm-540b", 540.35),
        ("gpt2-1.5b", 1.556),
        ("gpt3-175b", 174.6),
        ("llama3.1-405b", 405.85),
        ("kimi-k2-1t", 1026.4),
    ],
)
def test_parameters_in_billions(name, billions):
    assert parameters(model(name)).total / 1e9 == pytest.approx(billions, rel=1e-3)


def test_parameters_of_a_small_model_counted_by_hand():
    attention = Attention(name="full", span="full", heads=2, kv_heads=1, head_dim=3, value_head_dim=3)
    assert attention.params(4) == 4 * 6 + 4 * 3 + 4 * 3 + 6 * 4
    latent = Attention(
        name="mla",
        span="full",
        heads=2,
        kv_heads=2,
        head_dim=5,
        value_head_dim=3,
        q_lora_rank=7,
        kv_lora_rank=6,
        nope_head_dim=3,
        rope_head_dim=2,
    )
    assert latent.params(4) == 4 * 7 + 7 * 10 + 4 * (6 + 2) + 6 * 2 * (3 + 3) + 6 * 4
    moe = FeedForward(name="moe", d_ff=5, experts=3, experts_per_token=2, shared_experts=1, d_ff_shared=6)
    assert moe.params(4) == (4 * 3 + 3 * 4 * 6 + 3 * 3 * 4 * 5, 4 * 3 + 3 * 4 * 6 + 2 * 3 * 4 * 5)
    assert FeedForward(name="dense", d_ff=5, gated=False).params(4) == (40, 40)


@pytest.mark.parametrize(
    "name, kv_bytes",
    [
        ("llama3.1-8b", 131072),
        ("llama3.1-70b", 327680),
        ("llama3.1-405b", 516096),
        ("qwen3-32b", 262144),
        ("deepseek3-671b", 70272),
        ("gpt-oss-120b", 73728),
    ],
)
def test_dimensions_suffice_for_the_key_value_cache(name, kv_bytes):
    """BF16 bytes a token, were every layer to keep all tokens: 2 K d, or the compressed width of latent attention."""
    held = sum(
        a.kv_lora_rank + a.rope_head_dim if a.kv_lora_rank else a.kv_heads * (a.head_dim + a.value_head_dim)
        for a in model(name).attention
    )
    assert 2 * held == kv_bytes


def test_layer_patterns():
    names = [a.name for a in model("gemma3-4b").attention]
    assert names[:7] == ["sliding"] * 5 + ["full", "sliding"] and names.count("full") == 5 and len(names) == 34
    assert [f.name for f in model("deepseek3-671b").feedforward] == ["dense"] * 3 + ["moe"] * 58
    assert [f.name for f in model("llama4-17b-128e").feedforward] == ["dense", "moe"] * 24
    assert [a.name for a in model("llama4-17b-16e").attention] == (["chunked"] * 3 + ["full"]) * 12


@pytest.mark.parametrize("m", MODELS, ids=[m.name for m in MODELS])
def test_every_model_is_whole(m: Model):
    assert len(m.attention) == len(m.feedforward) == m.layers
    assert m.vocab >= m.vocab_unpadded > 0 and m.vocab - m.vocab_unpadded < 256
    for a in m.attention:
        assert a.span in SPANS and a.heads % a.kv_heads == 0
        assert (a.window_tokens is None) == (a.span == "full")
        if a.kv_lora_rank:
            assert a.head_dim == a.nope_head_dim + a.rope_head_dim and a.kv_heads == a.heads
    for f in m.feedforward:
        assert (f.experts > 0) == (f.experts_per_token > 0) and f.experts_per_token <= f.experts
        assert (f.shared_experts > 0) == (f.d_ff_shared > 0)
    p = parameters(m)
    assert p.total == p.attention + p.feedforward + p.embedding * (1 if m.tied_embeddings else 2)
    assert p.active_matmul == p.attention + p.feedforward_active + p.embedding
    names = {a.name for a in m.attention} & {f.name for f in m.feedforward}
    assert not names  # both share the key space of `numbers`


def test_json_of_a_model():
    shown = json.loads(json.dumps(entry("models", "meta-llama/Llama-3.1-8B")))
    assert shown["name"] == "llama3.1-8b" and len(shown["attention_by_layer"]) == 32
    numbers = shown["numbers"]
    assert numbers["full.kv_heads"]["value"] == 8 and numbers["dense.d_ff"]["value"] == 14336
    assert numbers["total_params"] == {
        "value": 8_029_995_008,
        "unit": "parameters",
        "source": "the dimensions above",
        "mark": "derived",
        "note": "",
    }
    for m in MODELS:
        json.dumps(entry("models", m.name), allow_nan=False)


def test_the_vocabulary_is_the_model_s_and_padding_is_asked_for():
    found = model("gpt2-1.5b")
    assert found.vocab == found.vocab_unpadded == 50257
    assert any("50,304" in note for note in found.notes)


def test_attention_tells_of_its_latent_widths_and_its_window_or_that_it_has_none():
    for kind in {a for m in models().values() for a in m.attention}:
        assert (kind.latent is None) == (kind.kv_lora_rank is None)
        assert kind.span == "full" or kind.window > 0
    full = model("llama3.1-8b").attention[0]
    with pytest.raises(ValueError, match="full attention has no window"):
        _ = full.window
    with pytest.raises(ValueError, match="without the widths of its heads"):
        _ = replace(full, kv_lora_rank=512).latent
