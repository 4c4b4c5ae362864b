"""Models from a Hugging Face config.json: the families whose layers are known, with their library defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from catalog.dims import (
    HEADS,
    LAYERS,
    TOKENS,
    WIDTH,
    Dims,
    attention,
    build,
    dense,
    head_width,
    impossible,
    latent_attention,
    moe,
)
from catalog.lookup import shown
from catalog.models import Attention, FeedForward, Model
from errors.shapes import is_list, is_object


@dataclass(frozen=True)
class Family:
    """What a family's configuration leaves unsaid.

    `tied`: the output projection is the embedding table. `window`: the window where the file names none. `opt_in`: a
    window counts only with `use_sliding_window`. `pattern`: layers in a cycle, of which the last attends to everything;
    1: all alike. `defaults`: dimensions that a file saved by the library omits because they are the library's own.
    """

    tied: bool = False
    gated: bool = True
    window: int | None = None
    opt_in: bool = False
    pattern: int = 1
    span: str = "sliding"
    defaults: Mapping[str, Any] | None = None


_GEMMA3 = {
    "vocab_size": 262208,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 26,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
}

# Source: the defaults of each family's configuration class in the transformers library.
FAMILIES: dict[str, Family] = {
    "llama": Family(),
    "mistral": Family(window=4096),
    "mixtral": Family(),
    "qwen2": Family(opt_in=True),
    "qwen2_moe": Family(opt_in=True),
    "qwen3": Family(opt_in=True),
    "qwen3_moe": Family(opt_in=True),
    "gemma": Family(tied=True, defaults={"head_dim": 256}),
    "gemma2": Family(tied=True, window=4096, pattern=2, defaults={"vocab_size": 256000, "head_dim": 256}),
    "gemma3_text": Family(tied=True, window=4096, pattern=6, defaults=_GEMMA3),
    "gpt2": Family(tied=True, gated=False, defaults={"vocab_size": 50257}),
    "deepseek_v2": Family(),
    "deepseek_v3": Family(),
    "kimi_k2": Family(),
    "gpt_oss": Family(window=128, pattern=2),
    "llama4_text": Family(window=8192, pattern=4, span="chunked"),
}
ALIASES = {"gemma3": "gemma3_text", "llama4": "llama4_text"}
SPANS = {"full_attention": "full", "sliding_attention": "sliding", "chunked_attention": "chunked"}


def looks_like(raw: Mapping[str, Any]) -> bool:
    """Whether the names are those of a config.json."""
    return any(n in raw for n in ("model_type", "architectures", "text_config", "num_hidden_layers", "n_embd"))


def read(raw: Mapping[str, Any]) -> Model:
    """The model. Raises QuestionError for an architecture not known here and for dimensions that cannot be."""
    text = raw.get("text_config")
    inner = text if is_object(text) else raw
    kind = inner.get("model_type") or raw.get("model_type") or ("gpt2" if "n_embd" in inner else "llama")
    kind = ALIASES.get(kind, kind) if isinstance(kind, str) else kind
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise impossible(
            f"the architecture {shown(kind)} is not known here",
            f"one of {', '.join(FAMILIES)}",
            "Give its dimensions in Chipledger's own names instead: layers, d_model, vocab, heads, kv_heads, head_dim, "
            "d_ff, gated, tied_embeddings",
        )
    family = FAMILIES[kind]
    outer = {k: raw[k] for k in ("tie_word_embeddings", "_name_or_path", "name") if raw.get(k) is not None}
    dims = Dims({**(family.defaults or {}), **outer, **{k: v for k, v in inner.items() if v is not None}})
    layers = dims.number("num_hidden_layers", "n_layer", most=LAYERS)
    d_model = dims.number("hidden_size", "n_embd", most=WIDTH)
    return build(
        name=dims.text("name", "_name_or_path") or kind,
        d_model=d_model,
        vocab=dims.number("vocab_size", most=TOKENS),
        tied=dims.flag("tie_word_embeddings", default=family.tied),
        attention=_attention(dims, family, inner, layers, d_model),
        feedforward=_feedforward(dims, family, kind, layers, d_model),
        mtp_layers=dims.number("num_nextn_predict_layers", most=LAYERS, least=0, default=0),
    )


def _attention(dims: Dims, family: Family, inner: Mapping[str, Any], layers: int, d_model: int) -> list[Attention]:
    heads = dims.number("num_attention_heads", "n_head", most=HEADS)
    if dims.has("kv_lora_rank"):
        return [latent_attention(dims, heads)] * layers
    kv_heads = dims.number("num_key_value_heads", most=HEADS, default=heads)
    head_dim = dims.number("head_dim", most=WIDTH, default=None) or head_width(d_model, heads)
    spans = _spans(dims, family, inner, layers)
    window = None
    if any(s != "full" for s in spans):
        window = dims.number("attention_chunk_size", "sliding_window", most=TOKENS, default=family.window)
    kinds = {
        s: attention(heads=heads, kv_heads=kv_heads, head_dim=head_dim, span=s, window_tokens=window)
        for s in set(spans)
    }
    return [kinds[s] for s in spans]


def _spans(dims: Dims, family: Family, inner: Mapping[str, Any], layers: int) -> list[str]:
    """How far each layer looks: as `layer_types` says, else by the family's rule."""
    named = inner.get("layer_types")
    if named is not None:
        if not is_list(named) or len(named) != layers or not all(t in SPANS for t in named):
            raise impossible(f"layer_types is {shown(named)}", f"{layers} entries, each one of {', '.join(SPANS)}")
        return [SPANS[t] for t in named]
    if family.opt_in:  # and the first layers attend to everything
        since = dims.number("max_window_layers", most=LAYERS, least=0, default=layers)
        windowed = dims.flag("use_sliding_window", default=False) and inner.get("sliding_window") is not None
        return ["sliding" if windowed and i >= since else "full" for i in range(layers)]
    if "sliding_window" in inner and inner["sliding_window"] is None:
        return ["full"] * layers
    if family.window is None and not dims.has("sliding_window"):
        return ["full"] * layers
    cycle = dims.number("sliding_window_pattern", "no_rope_layer_interval", most=LAYERS, default=family.pattern)
    return [family.span if cycle == 1 or (i + 1) % cycle else "full" for i in range(layers)]


def _feedforward(dims: Dims, family: Family, kind: str, layers: int, d_model: int) -> list[FeedForward]:
    experts = dims.number("num_local_experts", "num_experts", "n_routed_experts", most=HEADS, least=0, default=0)
    if not experts:
        default = 4 * d_model if kind == "gpt2" else None
        d_ff = dims.number("intermediate_size", "n_inner", most=WIDTH, **({"default": default} if default else {}))
        return [dense(d_ff, family.gated)] * layers
    wide = dims.number("intermediate_size", most=WIDTH, default=None)
    d_ff = dims.number("moe_intermediate_size", most=WIDTH, default=wide)
    if d_ff is None:
        raise impossible("moe_intermediate_size is missing", "a whole number from 1")
    shared = dims.number("n_shared_experts", most=HEADS, least=0, default=0)
    if dims.has("shared_expert_intermediate_size") or kind == "llama4_text":
        shared = 1
    routed = moe(
        d_ff=d_ff,
        experts=experts,
        experts_per_token=dims.number("num_experts_per_tok", "experts_per_token", most=HEADS),
        shared_experts=shared,
        d_ff_shared=dims.number("shared_expert_intermediate_size", most=WIDTH, default=None),
    )
    plain = dense(dims.number("intermediate_size_mlp", "intermediate_size", most=WIDTH, default=d_ff), family.gated)
    return [routed if routes else plain for routes in _routed(dims, layers)]


def _routed(dims: Dims, layers: int) -> list[bool]:
    """Which layers have experts: those after the dense ones at the start, every so many, less those listed."""
    first = dims.number("first_k_dense_replace", most=LAYERS, least=0, default=0)
    every = dims.number("decoder_sparse_step", "interleave_moe_layer_step", most=LAYERS, default=1)
    nth = dims.number("moe_layer_freq", most=LAYERS, default=1)  # counts from the first layer, the others to it
    listed = dims.raw.get("mlp_only_layers") or ()
    if not isinstance(listed, list | tuple):
        raise impossible(f"mlp_only_layers is {shown(listed)}", "a list of layer numbers")
    return [i >= first and (i + 1) % every == 0 and i % nth == 0 and i not in listed for i in range(layers)]
