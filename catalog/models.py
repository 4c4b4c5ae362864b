"""Language models: the dimensions from which parameters, FLOPs, memory and key-value caches follow."""

from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Any

from catalog.entries import MARKS, Number, Value, read_data, rows_of
from catalog.formats import FORMATS, PARTS, Published
from catalog.lookup import Index

UNITS: dict[str, tuple[str, str]] = {
    "layers": ("layers", "decoder layers, without multi-token prediction"),
    "d_model": ("elements", "width of the residual stream"),
    "vocab": ("tokens", "rows of the embedding table, padding included"),
    "vocab_unpadded": ("tokens", "tokens that the vocabulary really has"),
    "tied_embeddings": ("yes or no", "the output projection is the embedding table"),
    "mtp_layers": ("layers", "extra multi-token-prediction layers"),
    "heads": ("heads", "query heads"),
    "kv_heads": ("heads", "key and value heads"),
    "head_dim": ("elements", "width of a query or key head"),
    "value_head_dim": ("elements", "width of a value head"),
    "window_tokens": ("tokens", "how far a sliding window looks back, or the length of a chunk"),
    "q_lora_rank": ("elements", "width of the compressed queries (latent attention)"),
    "kv_lora_rank": ("elements", "width of the compressed keys and values (latent attention)"),
    "nope_head_dim": ("elements", "part of a query or key head without position"),
    "rope_head_dim": ("elements", "part of a query or key head with position; one for all key heads"),
    "shared_kv": ("yes or no", "keys and values share one projection"),
    "d_ff": ("elements", "hidden width of a feed-forward block, or of one routed expert"),
    "gated": ("yes or no", "three matrices instead of two (SwiGLU, GeGLU)"),
    "experts": ("experts", "routed experts; 0: a dense block"),
    "experts_per_token": ("experts", "routed experts that a token visits"),
    "shared_experts": ("experts", "experts that every token visits"),
    "d_ff_shared": ("elements", "hidden width of one shared expert"),
    "layers_of_kind": ("layers", "how many layers have this block"),
    "total_params": ("parameters", "matrices and embeddings; no norms, biases, positions or prediction layers"),
    "active_matmul_params": ("parameters", "weights that one token is multiplied with, output projection included"),
    "silent_tokens": ("tokens", "of each answer that come before the first that a client of a chat endpoint sees"),
    "published_format": ("format", "in which the maker hands out the weights, scales included"),
    "published_parts": ("parts", "of the weights that are kept in that format; the others are in bf16"),
}

SPANS: dict[str, str] = {
    "full": "every earlier token",
    "sliding": "the last `window_tokens` tokens",
    "chunked": "earlier tokens of the same chunk of `window_tokens`",
}


@dataclass(frozen=True, kw_only=True)
class Latent:
    """Widths of latent attention (MLA): of the compressed keys and values, of the compressed query (None: it is not
    compressed), and of a head without and with positions."""

    kv_rank: int
    q_rank: int | None
    nope: int
    rope: int


@dataclass(frozen=True, kw_only=True)
class Attention:
    """One kind of attention layer. `span` is a key of SPANS; `kv_lora_rank` makes it latent (MLA)."""

    name: str
    span: str
    heads: int
    kv_heads: int
    head_dim: int
    value_head_dim: int
    window_tokens: int | None = None
    q_lora_rank: int | None = None
    kv_lora_rank: int | None = None
    nope_head_dim: int | None = None
    rope_head_dim: int | None = None
    shared_kv: bool = False

    @property
    def latent(self) -> Latent | None:
        """The widths of MLA, None for other kinds. Raises ValueError where one is missing: a defect of the entry."""
        if self.kv_lora_rank is None:
            return None
        if self.nope_head_dim is None or self.rope_head_dim is None:
            raise ValueError(f"{self.name}: latent attention without the widths of its heads")
        return Latent(
            kv_rank=self.kv_lora_rank, q_rank=self.q_lora_rank, nope=self.nope_head_dim, rope=self.rope_head_dim
        )

    @property
    def window(self) -> int:
        """Tokens of the window or chunk. Raises ValueError for attention that has none."""
        if self.window_tokens is None:
            raise ValueError(f"{self.name}: {self.span} attention has no window")
        return self.window_tokens

    def params(self, d_model: int) -> int:
        """Weights of the projections: d(H h) + d K (h + v) + (H v) d, or the low-rank chain of MLA."""
        out = self.heads * self.value_head_dim * d_model
        if self.kv_lora_rank is None:
            values = 0 if self.shared_kv else self.kv_heads * self.value_head_dim
            return d_model * (self.heads * self.head_dim + self.kv_heads * self.head_dim + values) + out
        wide = self.heads * self.head_dim
        queries = d_model * self.q_lora_rank + self.q_lora_rank * wide if self.q_lora_rank else d_model * wide
        down = d_model * (self.kv_lora_rank + (self.rope_head_dim or 0))
        keys_and_values = self.heads * ((self.nope_head_dim or 0) + self.value_head_dim)
        return queries + down + self.kv_lora_rank * keys_and_values + out


@dataclass(frozen=True, kw_only=True)
class FeedForward:
    """One kind of feed-forward block: dense, or with routed (and shared) experts."""

    name: str
    d_ff: int
    gated: bool = True
    experts: int = 0
    experts_per_token: int = 0
    shared_experts: int = 0
    d_ff_shared: int = 0

    def params(self, d_model: int) -> tuple[int, int]:
        """(all weights, weights that one token meets), the router included: m d f each, m = 3 gated, 2 not."""
        block = (3 if self.gated else 2) * d_model
        if not self.experts:
            return block * self.d_ff, block * self.d_ff
        always = d_model * self.experts + block * self.shared_experts * self.d_ff_shared
        expert = block * self.d_ff
        return always + self.experts * expert, always + self.experts_per_token * expert


@dataclass(frozen=True, kw_only=True)
class Model:
    """A decoder-only transformer. `attention` and `feedforward` have one entry for each layer, in order."""

    name: str
    aliases: tuple[str, ...]
    layers: int
    d_model: int
    vocab: int
    vocab_unpadded: int
    tied_embeddings: bool
    mtp_layers: int
    attention: tuple[Attention, ...]
    feedforward: tuple[FeedForward, ...]
    source: str
    mark: str
    notes: tuple[str, ...]
    published: Published = Published()
    silent_tokens: int = 0

    @property
    def numbers(self) -> dict[str, Number]:
        """Every dimension, those of a kind of layer as `kind.dimension`, and the two parameter counts."""

        def stated(key: str, value: Value) -> Number:
            return Number(value=value, unit=UNITS[key][0], source=self.source, mark=self.mark)

        own = ("layers", "d_model", "vocab", "vocab_unpadded", "tied_embeddings", "mtp_layers")
        result = {key: stated(key, getattr(self, key)) for key in own}
        for kinds in (self.attention, self.feedforward):
            for kind, layers in Counter(kinds).items():
                result[f"{kind.name}.layers_of_kind"] = stated("layers_of_kind", layers)
                for key, value in vars(kind).items():
                    if key in UNITS and value is not None:
                        result[f"{kind.name}.{key}"] = stated(key, value)
        if self.silent_tokens:
            result["silent_tokens"] = stated("silent_tokens", self.silent_tokens)
        result["published_format"] = stated("published_format", self.published.format)
        if self.published.narrow != PARTS:
            result["published_parts"] = stated("published_parts", ", ".join(self.published.narrow))
        counts = parameters(self)
        for key, value in (("total_params", counts.total), ("active_matmul_params", counts.active_matmul)):
            result[key] = Number(value=value, unit=UNITS[key][0], source="the dimensions above", mark="derived")
        return result

    def rows(self) -> list[dict[str, Value]]:
        """One row for each number."""
        numbers = self.numbers
        return rows_of(self.name, numbers, {k: UNITS[k.rpartition(".")[2]][1] for k in numbers})

    def as_json(self) -> dict[str, Any]:
        """What `catalog models NAME --json` prints."""
        return {
            "name": self.name,
            "aliases": list(self.aliases),
            "numbers": {k: n.as_json() for k, n in self.numbers.items()},
            "attention_by_layer": [a.name for a in self.attention],
            "feedforward_by_layer": [f.name for f in self.feedforward],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Weights of a model, counted in parameters. Norms, biases, learned positions and MTP layers are left out.

    `total` = attention + feedforward + vocab x d_model, twice where embeddings are not tied.
    `active_matmul` = attention + active feedforward + vocab x d_model (the output projection; looking up an
    embedding multiplies nothing).
    """

    total: int
    active_matmul: int
    attention: int
    feedforward: int
    feedforward_active: int
    embedding: int


def parameters(model: Model) -> Parameters:
    """The weights of `model`, all and those that one token is multiplied with."""
    attention = sum(a.params(model.d_model) for a in model.attention)
    blocks = [f.params(model.d_model) for f in model.feedforward]
    every, active = sum(b[0] for b in blocks), sum(b[1] for b in blocks)
    table = model.vocab * model.d_model
    return Parameters(
        total=attention + every + table * (1 if model.tied_embeddings else 2),
        active_matmul=attention + active + table,
        attention=attention,
        feedforward=every,
        feedforward_active=active,
        embedding=table,
    )


@cache
def models() -> dict[str, Model]:
    """Every model, by name."""
    data = read_data("models.json")
    return {name: _parse(name, raw, data["sources"]) for name, raw in data["models"].items()}


@cache
def index() -> Index:
    """Models by alias."""
    return Index("model", {name: m.aliases for name, m in models().items()})


def model(name: str) -> Model:
    """The model called `name` by any usual alias. Raises QuestionError, with the nearest names, where there is none."""
    return models()[index().find(name)]


def _parse(name: str, raw: dict[str, Any], sources: dict[str, str]) -> Model:
    if raw["mark"] not in MARKS:
        raise ValueError(f"{name}: mark {raw['mark']!r} does not exist")
    attention = {kind: _attention(kind, fields) for kind, fields in raw["attention"].items()}
    feedforward = {kind: FeedForward(name=kind, **fields) for kind, fields in raw["feedforward"].items()}
    layers = raw["layers"]
    return Model(
        name=name,
        aliases=tuple(raw["aliases"]),
        layers=layers,
        d_model=raw["d_model"],
        vocab=raw["vocab"],
        vocab_unpadded=raw.get("vocab_unpadded", raw["vocab"]),
        tied_embeddings=raw["tied_embeddings"],
        mtp_layers=raw.get("mtp_layers", 0),
        attention=tuple(attention[k] for k in _expand(raw.get("attention_pattern", list(attention)), layers)),
        feedforward=tuple(feedforward[k] for k in _expand(raw.get("feedforward_pattern", list(feedforward)), layers)),
        source=sources[raw["source"]],
        mark=raw["mark"],
        notes=tuple(raw.get("notes", ())),
        published=_published(name, raw),
        silent_tokens=raw.get("silent_tokens", 0),
    )


def _published(name: str, raw: dict[str, Any]) -> Published:
    """In bf16 where the entry says nothing; a format's own narrow parts where it names none."""
    said = raw.get("published", {})
    if (kind := said.get("format", Published.format)) not in FORMATS:
        raise ValueError(f"{name}: format {kind!r} does not exist")
    return Published(kind, tuple(said.get("narrow", FORMATS[kind].narrow)))


def _attention(kind: str, fields: dict[str, Any]) -> Attention:
    fields = dict(fields)
    if "kv_lora_rank" in fields:
        fields["head_dim"] = fields["nope_head_dim"] + fields["rope_head_dim"]
        fields["kv_heads"] = fields["heads"]
    fields.setdefault("value_head_dim", fields["head_dim"])
    return Attention(name=kind, span=kind if kind in SPANS else "full", **fields)


def _expand(pattern: list[str], layers: int) -> list[str]:
    """`["sliding*5", "full"]` over so many layers: repeated from the start, cut at the last layer."""
    cycle: list[str] = []
    for item in pattern:
        kind, _, times = item.partition("*")
        cycle += [kind] * int(times or 1)
    return [cycle[i % len(cycle)] for i in range(layers)]
