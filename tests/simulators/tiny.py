"""Small models of every kind that the catalogue knows, for real numbers on a CPU."""

from catalog.models import Attention, FeedForward, Model

FULL = Attention(name="full", span="full", heads=4, kv_heads=2, head_dim=16, value_head_dim=16)
SLIDING = Attention(
    name="sliding", span="sliding", heads=4, kv_heads=2, head_dim=16, value_head_dim=16, window_tokens=24
)
CHUNKED = Attention(name="chunked", span="chunked", heads=4, kv_heads=4, head_dim=8, value_head_dim=8, window_tokens=32)
LATENT = Attention(
    name="mla",
    span="full",
    heads=4,
    kv_heads=4,
    head_dim=24,
    value_head_dim=16,
    q_lora_rank=32,
    kv_lora_rank=16,
    nope_head_dim=16,
    rope_head_dim=8,
)
SHARED = Attention(name="full", span="full", heads=4, kv_heads=1, head_dim=16, value_head_dim=16, shared_kv=True)
DENSE = FeedForward(name="dense", d_ff=96)
PLAIN = FeedForward(name="dense", d_ff=96, gated=False)
MOE = FeedForward(name="moe", d_ff=48, experts=8, experts_per_token=2, shared_experts=1, d_ff_shared=32)


def model(attention: list[Attention], feedforward: list[FeedForward], tied: bool = False) -> Model:
    return Model(
        name="tiny",
        aliases=(),
        layers=len(attention),
        d_model=64,
        vocab=128,
        vocab_unpadded=128,
        tied_embeddings=tied,
        mtp_layers=0,
        attention=tuple(attention),
        feedforward=tuple(feedforward),
        source="",
        mark="",
        notes=(),
    )


MODELS: dict[str, Model] = {
    "dense": model([FULL] * 2, [DENSE] * 2),
    "windows": model([SLIDING, FULL, CHUNKED], [PLAIN] * 3, tied=True),
    "experts": model([FULL] * 2, [DENSE, MOE]),
    "latent": model([LATENT] * 2, [MOE] * 2),
    "shared": model([SHARED] * 2, [DENSE] * 2, tied=True),
}
