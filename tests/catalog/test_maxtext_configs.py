"""Configurations as MaxText prints them: what its defaults mean for each kind of block, and its scale."""

import pytest

from catalog import model, parameters
from catalog.configs import from_config
from tests.catalog.test_configs import FROM_MAXTEXT, MAXTEXT

BY_DEFAULT = {
    "base_moe_mlp_dim": 7168,
    "shared_experts": 1,
    "first_num_dense_layers": 0,
    "interleave_moe_layer_step": 1,
}


@pytest.mark.parametrize("block", ["mixtral", "mistral", "default", "DecoderBlockType.MIXTRAL"])
def test_what_maxtext_prints_by_default_does_not_count_for_blocks_that_do_not_use_it(block):
    made = from_config({**FROM_MAXTEXT["mixtral-8x7b"], **BY_DEFAULT, "decoder_block": block})
    assert parameters(made) == parameters(model("mixtral-8x7b"))


def test_experts_of_their_own_width_and_shared_ones_count_for_blocks_that_have_them():
    qwen = {
        "base_emb_dim": 2048,
        "base_num_decoder_layers": 48,
        "base_num_query_heads": 32,
        "base_num_kv_heads": 4,
        "base_mlp_dim": 6144,
        "head_dim": 128,
        "vocab_size": 151936,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "decoder_block": "qwen3_moe",
    }
    made = from_config({**qwen, **BY_DEFAULT, "base_moe_mlp_dim": 768})
    assert parameters(made) == parameters(model("qwen3-30b-a3b"))
    deepseek = from_config({**FROM_MAXTEXT["deepseek2-16b"], "decoder_block": "deepseek"})
    assert parameters(deepseek) == parameters(model("deepseek2-16b"))


def test_maxtext_s_global_scale_doubles_in_turn():
    """Scale 2 doubles heads and feed-forward width, 4 the width as well, 8 also the depth: 8 makes each twice."""
    base = from_config(MAXTEXT)
    for scale, heads, d_ff, d_model, layers in ((2, 2, 2, 1, 1), (4, 2, 2, 2, 1), (8, 2, 2, 2, 2), (16, 4, 4, 2, 2)):
        made = from_config({**MAXTEXT, "global_parameter_scale": scale})
        assert made.attention[0].heads == heads * base.attention[0].heads
        assert made.feedforward[0].d_ff == d_ff * base.feedforward[0].d_ff
        assert (made.d_model, made.layers) == (d_model * base.d_model, layers * base.layers)
