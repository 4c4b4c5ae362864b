"""Formats in which weights are kept: their bytes with scales, the parts that stay wide, and what multiplies them.

    mxfp4        4 bits, and 8 bits of scale for each 32: 4.25 bits              (OCP Microscaling Formats 1.0)
    nvfp4        4 bits, and 8 bits of scale for each 16: 4.5 bits               (NVIDIA, NVFP4)
    awq, gptq    4 bits, and 16 of scale and 4 of zero point for each 128: 4.16  (group size 128, the usual one)
    fp8-linear   8 bits, scales of a matrix or row left aside; int8-linear alike (FP8 and W8A8 of engines)
    int4-g32     4 bits, and 16 of scale for each 32: 4.5 bits                   (Kimi K2 Thinking, compressed-tensors)
    fp8-block    8 bits, and 32 bits of scale for each 128 x 128                 (DeepSeek-V3)

In these, embeddings, the output projection and the routers stay in bf16, and all but the experts where the model is
published so (gpt-oss, Kimi K2 Thinking). The plain names (bf16, fp8, int8, fp4, int4) are arithmetic: every weight in
that format, no scales; but where a model is published in a format of that family, its own is meant. Which peak of a
chip multiplies them is the format's; a chip that has no such peak only stores it and multiplies in bf16, as always with
AWQ, GPTQ and other 4-bit integers.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from errors import QuestionError

PARTS = ("attention", "dense", "experts", "router", "embedding")
"""Of the weights: attention's projections, feed-forward blocks that every token meets (shared experts too), routed
experts, what chooses them, and the tables of embeddings (the output projection is one)."""
MATRICES = ("attention", "dense", "experts")
WIDE = "bf16"
FLOATS = ("bf16", "fp16", "float32")  # of weights that are not quantised
PUBLISHED = "published"


@dataclass(frozen=True)
class Format:
    """`bytes` of a weight, its share of the scales included. `family`: the plain name of its elements. `multiplies`:
    the format whose peak multiplies it on a chip that has one. `narrow`: the parts that are kept so, others in WIDE."""

    name: str
    bytes: float
    family: str
    multiplies: str
    narrow: tuple[str, ...] = MATRICES


_PLAIN = (
    ("float32", 4, WIDE),
    ("bf16", 2, "bf16"),
    ("fp16", 2, "bf16"),
    ("fp8", 1, "fp8"),
    ("int8", 1, "int8"),
    ("fp4", 0.5, "fp4"),
    ("int4", 0.5, WIDE),
)
FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        *(Format(name, size, name, multiplies, PARTS) for name, size, multiplies in _PLAIN),
        Format("fp8-linear", 1, "fp8", "fp8"),
        Format("int8-linear", 1, "int8", "int8"),
        Format("fp8-block", 1 + 4 / 128**2, "fp8", "fp8"),
        Format("mxfp4", 0.5 + 1 / 32, "fp4", "fp4"),
        Format("nvfp4", 0.5 + 1 / 16, "fp4", "fp4"),
        Format("awq", 0.5 + 2.5 / 128, "int4", WIDE),
        Format("gptq", 0.5 + 2.5 / 128, "int4", WIDE),
        Format("int4-g32", 0.5 + 2 / 32, "int4", WIDE),
    )
}
NAMES = (*FORMATS, PUBLISHED)
_SPELLINGS = {  # as engines and configurations begin them: the first that fits
    "bfloat16": "bf16",
    "bf16": "bf16",
    "float16": "fp16",
    "fp16": "fp16",
    "half": "fp16",
    "float32": "float32",
    "fp32": "float32",
    "fp8-block": "fp8-block",
    "fp8-linear": "fp8-linear",
    "fp8": "fp8",
    "float8": "fp8",
    "int8-linear": "int8-linear",
    "int8": "int8",
    "w8a8": "int8",
    "mxfp4": "mxfp4",
    "nvfp4": "nvfp4",
    "modelopt_fp4": "nvfp4",
    "fp4": "fp4",
    "float4": "fp4",
    "awq": "awq",
    "gptq": "gptq",
    "int4-g32": "int4-g32",
    "int4": "int4",
}

_OF_MATRICES = {"fp8": "fp8-linear", "int8": "int8-linear"}
_IN_NAMES = {
    "awq": "awq",
    "gptq": "gptq",
    "w4a16": "gptq",
    "fp8": "fp8",
    "w8a8": "int8",
    "nvfp4": "nvfp4",
    "mxfp4": "mxfp4",
    "bf16": "bf16",
}


@dataclass(frozen=True)
class Published:
    """The format in which a model's weights are handed out, and the parts that are kept in it."""

    format: str = WIDE
    narrow: tuple[str, ...] = PARTS


@dataclass(frozen=True)
class Kept:
    """How the weights of a model are kept: bytes of a weight, and what would multiply it, by part."""

    name: str
    bytes: Mapping[str, float]
    multiplies: Mapping[str, str]

    @property
    def bulk(self) -> str:
        """What multiplies the narrowest part: the peak that the setup is known by."""
        return self.multiplies[min(PARTS, key=lambda p: (self.bytes[p], PARTS.index(p)))]


def spelled(said: object) -> str | None:
    """A key of FORMATS from a framework's name of a format (`fp8_e4m3`, `awq_marlin`, `compressed-tensors` is none);
    None for `auto` and what is not known."""
    text = str(said or "").lower().replace("torch.", "").replace("jnp.", "")
    return next((p for spelling, p in _SPELLINGS.items() if text.startswith(spelling)), None)


def named_format(model: object) -> str | None:
    """The format that the name of a checkpoint ends in or has between its separators (`Qwen3-8B-AWQ`,
    `...-quantized.w4a16`): a key of FORMATS, None where it says none."""
    words = re.split(r"[^a-z0-9]+", model.lower()) if isinstance(model, str) else []
    return next((_IN_NAMES[w] for w in reversed(words) if w in _IN_NAMES), None)


def stated_format(quantization: object, dtype: object, model: object) -> str | None:
    """A key of FORMATS from what a run says of its weights: the engine's word for their quantization; the name of the
    checkpoint, which tells more than `compressed-tensors` and kin do; else the type that is declared. None: not told.

    Where quantization is to fp8 or int8, matrices are kept so, and tables of embeddings in 16 bits (of an 8B model 13 %
    of all bytes). The type that an engine computes in is not that of weights that are quantised in some way.
    """
    named, word = (_OF_MATRICES.get(w, w) if w else w for w in (named_format(model), spelled(quantization)))
    if word is not None:
        return word
    word = spelled(dtype)
    if word is not None and word not in FLOATS:
        return word
    quantised = str(quantization or "").lower() not in ("", "none", "null", "auto")
    return named or (None if quantised else word)


def format_named(name: str) -> Format:
    """The format called so. Raises QuestionError where there is none."""
    if name not in FORMATS:
        raise QuestionError(f"precision {name!r}", expected=f"one of {', '.join(NAMES)}")
    return FORMATS[name]


class Handed(Protocol):
    """A model, of which only the format counts in which its maker hands out the weights."""

    @property
    def published(self) -> Published: ...


def own_format(model: Handed, precision: str) -> str:
    """The name of the format that `precision` means for `model`: its own where that is of the same family."""
    published = model.published.format
    if precision == PUBLISHED:
        return published
    asked = format_named(precision)
    plain = precision == asked.family or precision in _OF_MATRICES.values()
    return published if plain and FORMATS[published].family == asked.family else precision


def kept(model: Handed, precision: str, experts: str | None = None) -> Kept:
    """How `model` is kept where `precision` is asked for; `experts`: another format of the routed experts.

    Raises QuestionError for a format that is not known.
    """
    name = own_format(model, precision)
    found = format_named(name)
    narrow = model.published.narrow if name == model.published.format else found.narrow
    by = {part: found if part in narrow else FORMATS[WIDE] for part in PARTS}
    if experts is not None:
        by["experts"] = format_named(own_format(model, experts))
    return Kept(name, {p: f.bytes for p, f in by.items()}, {p: f.multiplies for p, f in by.items()})
