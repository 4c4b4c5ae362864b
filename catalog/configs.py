"""A model from a configuration: Chipledger's own names, Hugging Face's config.json, or MaxText's keys."""

from itertools import product

from catalog import huggingface, maxtext
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
from catalog.models import SPANS, Attention, FeedForward, Model, model, parameters
from errors.shapes import is_mapping

NAMES = {  # our name: how others write it, ours first
    "layers": ("layers", "num_layers", "n_layers"),
    "d_model": ("d_model", "emb_dim", "hidden_size"),
    "vocab": ("vocab", "vocab_size"),
    "heads": ("heads", "num_heads", "n_heads"),
    "kv_heads": ("kv_heads", "num_kv_heads"),
    "d_ff": ("d_ff", "mlp_dim", "ffn_dim", "intermediate_size"),
}


def from_config(config: object) -> Model:
    """The model that `config` describes, by whichever spelling it uses.

    A configuration that holds a name and no dimensions is looked up in the catalogue. Raises QuestionError, one
    sentence, for an architecture that is not known, a dimension that is missing, and dimensions that cannot be.
    """
    if not is_mapping(config):
        raise impossible(f"a model given as {shown(config)}", "a JSON object of dimensions")
    if huggingface.looks_like(config):
        return huggingface.read(config)
    if maxtext.looks_like(config):
        return maxtext.read(config)
    dims = Dims(config)
    name = dims.text("name", "model_name")
    if name and not dims.has(*(spelling for names in NAMES.values() for spelling in names)):
        return model(name)
    return _flat(dims, name)


def _flat(dims: Dims, name: str) -> Model:
    """All layers alike (but dense ones at the start), in Chipledger's names."""
    layers = dims.number(*NAMES["layers"], most=LAYERS)
    d_model = dims.number(*NAMES["d_model"], most=WIDTH)
    vocab = dims.number(*NAMES["vocab"], most=TOKENS)
    seen = [_flat_attention(dims, d_model)] * layers
    gated, tied = dims.flag("gated", default=None), dims.flag("tied_embeddings", default=None)
    stated = dims.number("parameters", "total_params", most=1 << 60, default=None)

    def made(gated: bool, tied: bool, notes: tuple[str, ...]) -> Model:
        return build(
            name=name,
            d_model=d_model,
            vocab=vocab,
            tied=tied,
            attention=seen,
            notes=notes,
            feedforward=_flat_feedforward(dims, layers, gated),
            mtp_layers=dims.number("mtp_layers", most=LAYERS, least=0, default=0),
        )

    if gated is not None and tied is not None:
        return made(gated, tied, ())
    choices = list(product((True, False) if gated is None else (gated,), (False, True) if tied is None else (tied,)))
    if stated is None:
        return made(*choices[0], ("Taken as gated (three matrices) and untied where the configuration is silent.",))
    nearest = min(choices, key=lambda c: abs(parameters(made(*c, ())).total - stated))
    words = ("three" if nearest[0] else "two", "shares" if nearest[1] else "does not share")
    note = "{} matrices a feed-forward block, and an output projection that {} the embedding table: ".format(*words)
    return made(*nearest, (note.capitalize() + f"this comes nearest to the {stated:,} parameters stated.",))


def _flat_attention(dims: Dims, d_model: int) -> Attention:
    heads = dims.number(*NAMES["heads"], most=HEADS)
    if dims.has("kv_lora_rank"):
        return latent_attention(dims, heads)
    return attention(
        heads=heads,
        kv_heads=dims.number(*NAMES["kv_heads"], most=HEADS, default=heads),
        head_dim=dims.number("head_dim", most=WIDTH, default=None) or head_width(d_model, heads),
        value_head_dim=dims.number("value_head_dim", most=WIDTH, default=None),
        window_tokens=dims.number("window_tokens", most=TOKENS, default=None),
        span=dims.word("span", allowed=tuple(SPANS), default="sliding" if dims.has("window_tokens") else "full"),
        shared_kv=dims.flag("shared_kv", default=False),
    )


def _flat_feedforward(dims: Dims, layers: int, gated: bool) -> list[FeedForward]:
    d_ff = dims.number(*NAMES["d_ff"], most=WIDTH)
    experts = dims.number("experts", "num_experts", most=HEADS, least=0, default=0)
    if not experts:
        return [dense(d_ff, gated)] * layers
    routed = moe(
        d_ff=d_ff,
        experts=experts,
        experts_per_token=dims.number("experts_per_token", most=HEADS),
        gated=gated,
        shared_experts=dims.number("shared_experts", most=HEADS, least=0, default=0),
        d_ff_shared=dims.number("d_ff_shared", most=WIDTH, default=None),
    )
    first = dims.number("dense_layers", most=layers, least=0, default=0)
    plain = dense(dims.number("d_ff_dense", most=WIDTH, default=d_ff), gated)
    return [plain] * first + [routed] * (layers - first)
