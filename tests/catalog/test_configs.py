"""Models from configurations: the same weights as the catalogue's own entry, and one sentence for what cannot be."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog import model, parameters
from catalog.configs import from_config
from errors import QuestionError

REFERENCE = Path(__file__).resolve().parents[2] / "reference" / "runs" / "training" / "chipledger.json"

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "vocab_size": 128256,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
}
MISTRAL = {**LLAMA, "model_type": "mistral", "vocab_size": 32000}
DEEPSEEK3 = {
    "model_type": "deepseek_v3",
    "num_hidden_layers": 61,
    "hidden_size": 7168,
    "vocab_size": 129280,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "num_experts_per_tok": 8,
    "n_shared_experts": 1,
    "first_k_dense_replace": 3,
    "moe_layer_freq": 1,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "num_nextn_predict_layers": 1,
    "tie_word_embeddings": False,
}
DEEPSEEK2_LITE = {
    **DEEPSEEK3,
    "model_type": "deepseek_v2",
    "num_hidden_layers": 27,
    "hidden_size": 2048,
    "vocab_size": 102400,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "intermediate_size": 10944,
    "moe_intermediate_size": 1408,
    "n_routed_experts": 64,
    "num_experts_per_tok": 6,
    "n_shared_experts": 2,
    "first_k_dense_replace": 1,
    "q_lora_rank": None,
    "num_nextn_predict_layers": None,
}
GPT_OSS = {
    "model_type": "gpt_oss",
    "num_hidden_layers": 36,
    "hidden_size": 2880,
    "vocab_size": 201088,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "intermediate_size": 2880,
    "num_local_experts": 128,
    "num_experts_per_tok": 4,
    "experts_per_token": 4,
    "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention"] * 18,
}
QWEN3_MOE = {
    "model_type": "qwen3_moe",
    "num_hidden_layers": 48,
    "hidden_size": 2048,
    "vocab_size": 151936,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "intermediate_size": 6144,
    "moe_intermediate_size": 768,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "use_sliding_window": False,
    "max_window_layers": 48,
    "sliding_window": None,
}
LLAMA4 = {
    "model_type": "llama4",
    "text_config": {
        "model_type": "llama4_text",
        "num_hidden_layers": 48,
        "hidden_size": 5120,
        "vocab_size": 202048,
        "num_attention_heads": 40,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 8192,
        "intermediate_size_mlp": 16384,
        "num_local_experts": 128,
        "num_experts_per_tok": 1,
        "interleave_moe_layer_step": 2,
        "attention_chunk_size": 8192,
    },
}
GEMMA2_27B = {
    "model_type": "gemma2",
    "num_hidden_layers": 46,
    "hidden_size": 4608,
    "vocab_size": 256128,
    "num_attention_heads": 32,
    "num_key_value_heads": 16,
    "head_dim": 128,
    "intermediate_size": 36864,
    "sliding_window": 4096,
}
HUGGING_FACE = {
    "llama3.1-8b": LLAMA,
    "mistral-7b": {**MISTRAL, "sliding_window": None},
    "mistral-7b-v0.1": MISTRAL,
    "mixtral-8x7b": {**MISTRAL, "model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2},
    "qwen3-0.6b": {
        **QWEN3_MOE,
        "model_type": "qwen3",
        "num_hidden_layers": 28,
        "hidden_size": 1024,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "intermediate_size": 3072,
        "num_experts": None,
        "tie_word_embeddings": True,
    },
    "qwen3-30b-a3b": QWEN3_MOE,
    "gemma-7b": {
        "model_type": "gemma",
        "num_hidden_layers": 28,
        "hidden_size": 3072,
        "vocab_size": 256128,
        "num_attention_heads": 16,
        "num_key_value_heads": 16,
        "intermediate_size": 24576,
    },
    "gemma2-27b": GEMMA2_27B,
    "gemma3-4b": {  # as the library saves it: what equals its defaults is left out
        "model_type": "gemma3",
        "text_config": {
            "model_type": "gemma3_text",
            "hidden_size": 2560,
            "intermediate_size": 10240,
            "num_hidden_layers": 34,
            "sliding_window": 1024,
            "vocab_size": 262144,
        },
    },
    "gpt2-1.5b": {"model_type": "gpt2", "n_embd": 1600, "n_layer": 48, "n_head": 25},
    "deepseek2-16b": DEEPSEEK2_LITE,
    "deepseek3-671b": DEEPSEEK3,
    "gpt-oss-120b": GPT_OSS,
    "llama4-17b-128e": LLAMA4,
}
OURS = {
    "llama2-70b": {
        "layers": 80,
        "d_model": 8192,
        "vocab": 32000,
        "heads": 64,
        "kv_heads": 8,
        "head_dim": 128,
        "d_ff": 28672,
        "gated": True,
        "tied_embeddings": False,
    },
    "gpt3-175b": {
        "layers": 96,
        "d_model": 12288,
        "vocab": 50304,
        "heads": 96,
        "d_ff": 49152,
        "gated": False,
        "tied_embeddings": True,
    },
    "deepseek3-671b": {
        "layers": 61,
        "d_model": 7168,
        "vocab": 129280,
        "heads": 128,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "nope_head_dim": 128,
        "rope_head_dim": 64,
        "value_head_dim": 128,
        "d_ff": 2048,
        "experts": 256,
        "experts_per_token": 8,
        "shared_experts": 1,
        "dense_layers": 3,
        "d_ff_dense": 18432,
        "mtp_layers": 1,
    },
    "mistral-7b-v0.1": {
        "layers": 32,
        "d_model": 4096,
        "vocab": 32000,
        "heads": 32,
        "kv_heads": 8,
        "d_ff": 14336,
        "window_tokens": 4096,
    },
}
MAXTEXT = {
    "base_emb_dim": 4096,
    "base_num_decoder_layers": 32,
    "base_num_query_heads": 32,
    "base_num_kv_heads": 8,
    "base_mlp_dim": 14336,
    "head_dim": 128,
    "vocab_size": 128256,
    "mlp_activations": ["silu", "linear"],
}
FROM_MAXTEXT = {
    "llama3.1-8b": MAXTEXT,
    "mixtral-8x7b": {**MAXTEXT, "vocab_size": 32000, "num_experts": 8, "num_experts_per_tok": 2},
    "gpt-oss-20b": {
        "base_emb_dim": 2880,
        "base_num_decoder_layers": 24,
        "base_num_query_heads": 64,
        "base_num_kv_heads": 8,
        "base_mlp_dim": 2880,
        "base_moe_mlp_dim": 2880,
        "head_dim": 64,
        "vocab_size": 201088,
        "num_experts": 32,
        "num_experts_per_tok": 4,
        "decoder_block": "gpt_oss",
        "sliding_window_size": 128,
        "attention_type": "local_sliding",
    },
    "deepseek2-16b": {
        "base_emb_dim": 2048,
        "base_num_decoder_layers": 27,
        "base_num_query_heads": 16,
        "base_num_kv_heads": 16,
        "base_mlp_dim": 10944,
        "base_moe_mlp_dim": 1408,
        "vocab_size": 102400,
        "num_experts": 64,
        "num_experts_per_tok": 6,
        "shared_experts": 2,
        "first_num_dense_layers": 1,
        "attention_type": "mla",
        "q_lora_rank": 0,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
    },
}
ALL = [(name, c) for some in (HUGGING_FACE, OURS, FROM_MAXTEXT) for name, c in some.items()]


@pytest.mark.parametrize("name, config", ALL, ids=[name for name, _ in ALL])
def test_a_configuration_gives_the_catalogue_s_own_model(name, config):
    made, known = from_config(config), model(name)
    assert parameters(made) == parameters(known)
    assert made.tied_embeddings == known.tied_embeddings
    assert made.mtp_layers == known.mtp_layers or "base_emb_dim" in config

    def shapes(m):
        return [(a.span, a.window_tokens, a.heads, a.kv_heads, a.head_dim, a.value_head_dim) for a in m.attention]

    assert shapes(made) == shapes(known)
    assert [vars(f) for f in made.feedforward] == [vars(f) for f in known.feedforward]


def test_the_bundled_run_is_read_as_its_program_has_it():
    said = json.loads(REFERENCE.read_text())["model"]
    made = from_config(said)
    learned_positions = said["seq_len"] * said["emb_dim"]
    assert parameters(made).total + learned_positions == said["parameters"]
    assert not made.tied_embeddings and not made.feedforward[0].gated
    assert "1,736,704 parameters stated" in made.notes[0]


def test_a_name_alone_is_looked_up():
    assert from_config({"name": "meta-llama/Llama-3.1-8B"}) is model("llama3.1-8b")


def test_qwen_windows_begin_after_the_first_layers():
    windowed = {**QWEN3_MOE, "use_sliding_window": True, "sliding_window": 4096, "max_window_layers": 28}
    assert Counter(a.span for a in from_config(windowed).attention) == {"full": 28, "sliding": 20}


def test_a_qwen_window_counts_only_where_it_is_switched_on():
    silent = {k: v for k, v in QWEN3_MOE.items() if k != "use_sliding_window"} | {"sliding_window": 32768}
    assert {a.span for a in from_config(silent).attention} == {"full"}


def test_every_so_many_layers_have_experts():
    """Counted from the first layer by DeepSeek's key, to it by Qwen's."""
    deepseek = from_config({**DEEPSEEK2_LITE, "moe_layer_freq": 2})
    assert [i for i, f in enumerate(deepseek.feedforward) if f.experts] == list(range(2, 27, 2))
    qwen = from_config({**QWEN3_MOE, "decoder_sparse_step": 2, "mlp_only_layers": [3]})
    assert [i for i, f in enumerate(qwen.feedforward) if f.experts] == [i for i in range(1, 48, 2) if i != 3]


@pytest.mark.parametrize(
    "change, said",
    [
        ({"num_attention_heads": 30}, "30 heads do not divide d_model 4096"),
        ({"num_key_value_heads": 5, "head_dim": 128}, "32 heads cannot share 5 key-value heads"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is 0"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers is 1000000000"),
        ({"hidden_size": -4096}, "hidden_size is -4096"),
        ({"hidden_size": 4096.5}, "hidden_size is 4096.5"),
        ({"hidden_size": float("nan")}, "hidden_size is nan"),
        ({"hidden_size": "4096"}, "hidden_size is '4096'"),
        ({"hidden_size": True}, "hidden_size is True"),
        ({"vocab_size": 10**12}, "vocab_size is 1000000000000"),
        ({"intermediate_size": None}, "intermediate_size is missing"),
        ({"model_type": "mamba2"}, "the architecture 'mamba2' is not known here"),
        ({"model_type": ["llama"]}, "the architecture ['llama'] is not known here"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings is 'no'"),
        ({"layer_types": ["linear_attention"] * 32}, "layer_types is"),
        ({"num_local_experts": 8, "num_experts_per_tok": 9}, "a token visits 9 of 8 experts"),
        ({"num_local_experts": 8, "num_experts_per_tok": 2, "mlp_only_layers": 3}, "mlp_only_layers is 3"),
    ],
)
def test_impossible_dimensions_are_told_in_one_sentence(change, said):
    with pytest.raises(QuestionError) as e:
        from_config({**LLAMA, **change})
    assert said in str(e.value)
    assert "\n" not in str(e.value) and len(str(e.value)) < 700


@pytest.mark.parametrize(
    "config, said",
    [
        ({}, "layers is missing"),
        ("llama", "a model given as 'llama'"),
        ({**OURS["llama2-70b"], "span": "global"}, "span is 'global'"),
        ({**OURS["llama2-70b"], "span": "sliding"}, "a sliding span without window_tokens"),
        ({**OURS["deepseek3-671b"], "rope_head_dim": None}, "qk_rope_head_dim is missing"),
        ({**MAXTEXT, "global_parameter_scale": 3}, "global_parameter_scale is 3"),
        ({**MAXTEXT, "mlp_activations": 2}, "mlp_activations is 2"),
        ({**MAXTEXT, "attention_type": "ring"}, "attention_type is 'ring'"),
        ({"name": "no-such-model"}, "no model is called"),
    ],
)
def test_other_spellings_are_checked_as_well(config, said):
    with pytest.raises(QuestionError, match="(?s).*") as e:
        from_config(config)
    assert said in str(e.value)


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 1 << 40),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=2),
)


@settings(deadline=None, max_examples=300)
@given(st.sampled_from([c for _, c in ALL]), st.data())
def test_a_damaged_configuration_is_a_model_or_one_error(config, data):
    keys = data.draw(st.lists(st.sampled_from(sorted(config)), min_size=1, max_size=3))
    damaged = {**config, **{k: data.draw(VALUES) for k in keys}}
    try:
        made = from_config(damaged)
    except QuestionError:
        return
    assert parameters(made).total > 0 and made.layers == len(made.feedforward)
