"""Memory by formula: the general count gives the paper's formulas for the paper's model, and shards as it should."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.models import Attention, FeedForward, Model, model, models, parameters
from catalog.training_memory import (
    RECIPES,
    REMAT,
    Sharding,
    activations,
    interleave_factor,
    layer_activation_bytes,
    logits_bytes,
    state_bytes,
    training_memory,
)
from errors import QuestionError

SIZES = st.sampled_from([1, 2, 4, 8])


def gpt(heads: int, head_dim: int, layers: int) -> Model:
    """The paper's model: a heads of h / a, two matrices of 4 h, dropout."""
    h = heads * head_dim
    attention = Attention(
        name="full", span="full", heads=heads, kv_heads=heads, head_dim=head_dim, value_head_dim=head_dim
    )
    block = FeedForward(name="dense", d_ff=4 * h, gated=False)
    return Model(
        name="gpt",
        aliases=(),
        layers=layers,
        d_model=h,
        vocab=51200,
        vocab_unpadded=51200,
        tied_embeddings=True,
        mtp_layers=0,
        attention=(attention,) * layers,
        feedforward=(block,) * layers,
        source="",
        mark="published",
        notes=(),
    )


@given(
    heads=st.integers(1, 96),
    head_dim=st.sampled_from([64, 128]),
    layers=st.integers(1, 100),
    s=st.integers(1, 4096),
    b=st.integers(1, 8),
    t=SIZES,
    p=SIZES,
    m=st.integers(1, 4),
    remat=st.sampled_from(sorted(REMAT)),
    sp=st.booleans(),
)
def test_the_general_count_is_the_papers_formula(heads, head_dim, layers, s, b, t, p, m, remat, sp):
    sharding = Sharding(tensor=t, pipeline=p, interleave=m, sequence_parallel=sp)
    made = gpt(heads, head_dim, layers)
    layer = layer_activation_bytes(s=s, b=b, h=made.d_model, a=heads, t=t, remat=remat, sequence_parallel=sp)
    counted = activations(made, sharding, seq=s, batch=b, remat=remat, dropout=True)
    assert counted == pytest.approx(layer * layers * interleave_factor(p, m), rel=1e-12)


def test_a_layer_counted_by_hand():
    """Llama 3.1 8B, 8192 tokens: 14336 gated, 32 query heads and 8 key heads of 128."""
    llama = model("llama3.1-8b")
    between = (4 + 2 + 2) * 4096  # two norms, the attention's and the block's input
    inside = 2 * (32 * 128 + 8 * 128 + 8 * 128 + 32 * 128) + 3 * 2 * 14336
    scores = 2 * 32 * 8192
    for remat, expected in (("none", between + inside + scores), ("selective", between + inside), ("full", 2 * 4096)):
        assert activations(llama, Sharding(), seq=8192, batch=2, remat=remat) == 32 * 2 * 8192 * expected
    assert logits_bytes(llama, Sharding(), seq=8192, batch=2) == 4 * 8192 * 2 * (4096 + 128256)
    assert logits_bytes(llama, Sharding(pipeline=2), seq=8192, batch=2) == 0


@pytest.mark.parametrize("name", sorted(models()))
def test_less_is_kept_the_more_is_computed_again_and_split(name):
    known = model(name)
    kept = [activations(known, Sharding(), seq=4096, batch=1, remat=r) for r in ("none", "selective", "full")]
    assert kept[0] > kept[1] > kept[2] > 0
    whole, apart = (
        activations(known, Sharding(tensor=4, sequence_parallel=split), seq=4096, batch=1, remat="none")
        for split in (False, True)
    )
    assert whole > apart == pytest.approx(kept[0] / 4)


def test_state_by_recipe_and_sharding():
    assert sum(state_bytes(100, Sharding()).values()) == 1800
    assert {r: sum(sizes.values()) for r, sizes in RECIPES.items()} == {"mixed": 18, "float32": 16, "bfloat16": 8}
    spread = state_bytes(64, Sharding(data=8, fsdp=2, tensor=4, pipeline=2))
    assert spread == {"weights": 8, "gradients": 16, "master_weights": 16, "moments": 32}  # data only repeats
    llama = model("llama3.1-8b")
    held = training_memory(llama, Sharding(fsdp=8), seq=8192, batch=1, remat="full")
    assert held["weights"] == parameters(llama).total * 2 / 8
    assert set(held) == {"weights", "gradients", "master_weights", "moments", "activations", "logits"}


def test_what_cannot_be_is_refused():
    with pytest.raises(QuestionError, match="tensor = 0"):
        Sharding(tensor=0)
    with pytest.raises(QuestionError, match="recipe 'int3'"):
        state_bytes(1, Sharding(), "int3")
    assert Sharding(data=2, fsdp=3, tensor=4, pipeline=5).chips == 120
    assert replace(Sharding(), data=2).chips == 2
