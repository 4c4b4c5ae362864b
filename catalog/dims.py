"""Dimensions of a model as someone wrote them: read, checked, and put together to a `Model`.

Every dimension passes through here, whatever the spelling: whole, positive, not absurdly large, and fitting the others.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from catalog.lookup import shown
from catalog.models import Attention, FeedForward, Model
from errors import QuestionError

LAYERS, HEADS, WIDTH, TOKENS = 4096, 1 << 16, 1 << 22, 1 << 31  # the most that is believed
NEEDED = object()
WHERE = "the model's configuration"


def impossible(what: str, expected: str = "", advice: str = "") -> QuestionError:
    """The error for dimensions that cannot be."""
    return QuestionError(what, where=WHERE, expected=expected, advice=advice)


class Dims:
    """A configuration read by name; the first of several spellings that is there counts, null counts as absent."""

    def __init__(self, raw: Mapping[str, Any]):
        self.raw = raw

    def has(self, *names: str) -> bool:
        return any(self.raw.get(n) is not None for n in names)

    def number(self, *names: str, most: int, least: int = 1, default: Any = NEEDED) -> Any:
        """A whole number from `least` to `most`. Raises QuestionError for another, or where it is needed but absent."""
        name = next((n for n in names if self.raw.get(n) is not None), None)
        if name is None:
            if default is NEEDED:
                raise impossible(f"{names[0]} is missing", f"a whole number from {least:,}")
            return default
        value = self.raw[name]
        whole = isinstance(value, int | float) and not isinstance(value, bool) and value == value
        if not whole or not least <= value <= most or int(value) != value:
            raise impossible(f"{name} is {shown(value)}", f"a whole number from {least:,} to {most:,}")
        return int(value)

    def flag(self, *names: str, default: Any) -> Any:
        """Yes or no. Raises QuestionError for anything else."""
        name = next((n for n in names if self.raw.get(n) is not None), None)
        value = default if name is None else self.raw[name]
        if name is not None and not isinstance(value, bool):
            raise impossible(f"{name} is {shown(value)}", "true or false")
        return value

    def word(self, *names: str, allowed: Sequence[str], default: str) -> str:
        """One of `allowed`. Raises QuestionError for another."""
        value = next((self.raw[n] for n in names if self.raw.get(n) is not None), default)
        if value not in allowed:
            raise impossible(f"{names[0]} is {shown(value)}", f"one of {', '.join(allowed)}")
        return value

    def text(self, *names: str) -> str:
        """A name, cut where it is long; "" where there is none."""
        return next((str(self.raw[n])[:120] for n in names if isinstance(self.raw.get(n), str) and self.raw[n]), "")


def attention(
    *,
    heads: int,
    kv_heads: int,
    head_dim: int,
    value_head_dim: int | None = None,
    span: str = "full",
    window_tokens: int | None = None,
    name: str | None = None,
    shared_kv: bool = False,
) -> Attention:
    """An attention layer. Raises QuestionError where query heads cannot share the key-value heads evenly."""
    if heads % kv_heads:
        raise impossible(f"{heads} heads cannot share {kv_heads} key-value heads", "kv_heads that divide heads")
    if span != "full" and window_tokens is None:
        raise impossible(f"a {span} span without window_tokens", "how many tokens the window or chunk has")
    return Attention(
        name=name or span,
        span=span,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        value_head_dim=value_head_dim or head_dim,
        window_tokens=None if span == "full" else window_tokens,
        shared_kv=shared_kv,
    )


def latent_attention(dims: Dims, heads: int) -> Attention:
    """Multi-head latent attention by DeepSeek's names for its ranks and head widths, or by ours."""
    nope = dims.number("qk_nope_head_dim", "nope_head_dim", most=WIDTH)
    rope = dims.number("qk_rope_head_dim", "rope_head_dim", most=WIDTH)
    return Attention(
        name="mla",
        span="full",
        heads=heads,
        kv_heads=heads,
        head_dim=nope + rope,
        value_head_dim=dims.number("v_head_dim", "value_head_dim", most=WIDTH, default=nope),
        q_lora_rank=dims.number("q_lora_rank", most=WIDTH, least=0, default=None) or None,
        kv_lora_rank=dims.number("kv_lora_rank", most=WIDTH),
        nope_head_dim=nope,
        rope_head_dim=rope,
    )


def dense(d_ff: int, gated: bool) -> FeedForward:
    """A feed-forward block without experts."""
    return FeedForward(name="dense", d_ff=d_ff, gated=gated)


def moe(
    *,
    d_ff: int,
    experts: int,
    experts_per_token: int,
    shared_experts: int = 0,
    d_ff_shared: int | None = None,
    gated: bool = True,
) -> FeedForward:
    """A block of experts. Raises QuestionError where a token would visit more experts than there are."""
    if experts_per_token > experts:
        raise impossible(f"a token visits {experts_per_token} of {experts} experts", "experts_per_token up to experts")
    return FeedForward(
        name="moe",
        d_ff=d_ff,
        gated=gated,
        experts=experts,
        experts_per_token=experts_per_token,
        shared_experts=shared_experts,
        d_ff_shared=(d_ff_shared or d_ff) if shared_experts else 0,
    )


def head_width(d_model: int, heads: int) -> int:
    """head_dim where none is said. Raises QuestionError where the heads do not divide d_model."""
    if d_model % heads:
        raise impossible(f"{heads} heads do not divide d_model {d_model}", "head_dim, or heads that divide d_model")
    return d_model // heads


def build(
    *,
    name: str,
    d_model: int,
    vocab: int,
    tied: bool,
    attention: Sequence[Attention],
    feedforward: Sequence[FeedForward],
    mtp_layers: int = 0,
    notes: Sequence[str] = (),
) -> Model:
    """The model; `attention` and `feedforward` have one entry for each layer."""
    return Model(
        name=name or "configured model",
        aliases=(),
        layers=len(attention),
        d_model=d_model,
        vocab=vocab,
        vocab_unpadded=vocab,
        tied_embeddings=tied,
        mtp_layers=mtp_layers,
        attention=tuple(attention),
        feedforward=tuple(feedforward),
        source="the configuration given",
        mark="published",
        notes=tuple(notes),
    )
