"""Models from MaxText's configuration keys, its global scale included."""

from collections.abc import Mapping
from typing import Any

from catalog.dims import HEADS, LAYERS, TOKENS, WIDTH, Dims, attention, build, dense, impossible, latent_attention, moe
from catalog.lookup import shown
from catalog.models import Attention, FeedForward, Model
from errors.shapes import is_sequence

SPANS = {
    "global": "full",
    "full": "full",
    "mla": "full",
    "local_sliding": "sliding",
    "chunk": "chunked",
}
CYCLES = {"gemma2": 2, "gemma3": 6, "gpt_oss": 2, "llama4": 4}  # layers in a cycle whose last one sees everything
AS_DENSE = ("default", "llama2", "mistral", "mixtral")  # blocks whose experts are as wide as a dense feed-forward
UNSHARED = (*AS_DENSE, "qwen3_moe", "qwen3_custom_moe", "gpt_oss")  # blocks without experts that every token visits


def looks_like(raw: Mapping[str, Any]) -> bool:
    """Whether the names are those of MaxText."""
    return any(n in raw for n in ("base_emb_dim", "base_num_decoder_layers", "base_num_query_heads"))


def read(raw: Mapping[str, Any]) -> Model:
    """The model. Raises QuestionError for dimensions that cannot be."""
    dims = Dims(raw)
    emb, head, mlp, deep = _scales(dims.number("global_parameter_scale", most=1 << 20, default=1))
    layers = dims.number("base_num_decoder_layers", most=LAYERS) << deep
    d_model = dims.number("base_emb_dim", most=WIDTH) << emb
    return build(
        name=dims.text("model_name", "name"),
        d_model=d_model,
        vocab=dims.number("vocab_size", most=TOKENS),
        tied=dims.flag("logits_via_embedding", default=False),
        attention=_attention(dims, layers, head),
        feedforward=_feedforward(dims, layers, mlp),
        mtp_layers=dims.number("mtp_num_layers", most=LAYERS, least=0, default=0),
    )


def _block(dims: Dims) -> str:
    """The kind of layer, as configured or as a log prints it (`DecoderBlockType.MIXTRAL`); "" where nothing says."""
    return dims.text("decoder_block").rpartition(".")[2].lower()


def _scales(scale: int) -> tuple[int, int, int, int]:
    """Doublings of width, heads, feed-forward width and depth: in turn heads and feed-forward, width, depth."""
    doublings = scale.bit_length() - 1
    if 1 << doublings != scale:
        raise impossible(f"global_parameter_scale is {scale}", "a power of two")
    cycles, rest = divmod(doublings, 3)
    return cycles + (rest > 1), cycles + (rest > 0), cycles + (rest > 0), cycles


def _attention(dims: Dims, layers: int, doubled: int) -> list[Attention]:
    heads = dims.number("base_num_query_heads", most=HEADS) << doubled
    kind = dims.word("attention_type", allowed=tuple(SPANS), default="global")
    if kind == "mla":
        return [latent_attention(dims, heads)] * layers
    kv_heads = dims.number("base_num_kv_heads", most=HEADS, default=heads >> doubled) << doubled
    shape = {"heads": heads, "kv_heads": kv_heads, "head_dim": dims.number("head_dim", most=WIDTH, default=128)}
    full, span = attention(**shape), SPANS[kind]
    window = dims.number("sliding_window_size", most=TOKENS, least=0, default=0)
    cycle = CYCLES.get(_block(dims), 1)
    if _block(dims) == "llama4":
        span = "chunked"
        window = dims.number("chunk_attn_window_size", most=TOKENS, least=0, default=0)
        cycle = dims.number("nope_layer_interval", most=LAYERS, default=cycle)
    elif cycle > 1:
        span = "sliding"
    elif span == "chunked":
        window = dims.number("chunk_attn_window_size", most=TOKENS, least=0, default=0)
    if span == "full" or not window:
        return [full] * layers
    near = attention(**shape, span=span, window_tokens=window)
    return [near if cycle == 1 or (i + 1) % cycle else full for i in range(layers)]


def _feedforward(dims: Dims, layers: int, doubled: int) -> list[FeedForward]:
    """Dense layers and layers of experts. A whole configuration holds a width of experts and a number of shared ones
    by default: both count only for blocks that use them."""
    activations = dims.raw.get("mlp_activations", ["silu", "linear"])
    if not isinstance(activations, str) and not is_sequence(activations):
        raise impossible(f"mlp_activations is {shown(activations)}", "a list such as ['silu', 'linear']")
    gated = "linear" in activations if isinstance(activations, str) else len(activations) > 1
    width = dims.number("base_mlp_dim", most=WIDTH) << doubled
    plain = dense(width, gated)
    experts = dims.number("num_experts", most=HEADS, least=0, default=1)
    if experts < 2:
        return [plain] * layers
    block = _block(dims)
    inner = None if block in AS_DENSE else dims.number("base_moe_mlp_dim", most=WIDTH, default=None)
    shared = 0 if block in UNSHARED else dims.number("shared_experts", most=HEADS, least=0, default=0)
    routed = moe(
        d_ff=width if inner is None else inner << doubled,
        experts=experts,
        experts_per_token=dims.number("num_experts_per_tok", most=HEADS),
        gated=gated,
        shared_experts=shared,
    )
    first = dims.number("first_num_dense_layers", most=LAYERS, least=0, default=0)
    every = dims.number("interleave_moe_layer_step", most=LAYERS, default=1)
    return [routed if i >= first and (i + 1) % every == 0 else plain for i in range(layers)]
