"""Room for sequences beside the weights: what one chip holds when a model is served, by arithmetic.

    room of a chip  = memory x utilization - weights on it - reserve for activations
    sequences       = floor(room / cache of one sequence on one chip), of each group of chips that share the weights
                      (tensor x pipeline chips; pipeline stages are taken to be equal)

A chip's part of the cache comes from `catalog.inference`: heads are dealt out, and repeated where there are more chips
than key heads; caches are kept in pages, so each sequence is rounded up. With data-parallel attention each chip keeps
whole sequences of its own and all of attention's weights. GB are 10^9 bytes, GiB 2^30.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from catalog.formats import NAMES
from catalog.inference import BYTES, chip_weights_bytes, element_bytes, kv_bytes_per_token, spans, weights_bytes
from catalog.models import Model
from errors import QuestionError

ATTENTION = ("tensor", "data")
LARGEST = 1 << 24  # chips, tokens of a page: beyond any machine
LONGEST = 1 << 31  # tokens of a sequence


@dataclass(frozen=True, kw_only=True)
class Setting:
    """How a model is to be served. Bytes are of one chip, but `weights_bytes`, all weights once where declared.

    `tensor`: chips that share each layer's weights; `pipeline`: stages of layers. `attention` "data": each chip keeps
    whole sequences of its own. `repeat` False: as if what cannot be split by heads could be (an arithmetic that is
    often quoted).
    """

    chips: int
    tensor: int
    hbm_bytes: float
    seq: int
    pipeline: int = 1
    attention: str = "tensor"
    kv_precision: str = "bf16"
    weights_precision: str = "bf16"
    utilization: float = 0.9
    activations_bytes: float = 0.0
    page_tokens: int = 16
    repeat: bool = True
    weights_bytes: float | None = None

    def __post_init__(self) -> None:
        for name, value, most in (
            ("chips", self.chips, LARGEST),
            ("tensor", self.tensor, LARGEST),
            ("pipeline", self.pipeline, LARGEST),
            ("seq", self.seq, LONGEST),
            ("page_tokens", self.page_tokens, LARGEST),
        ):
            if not 1 <= value <= most:
                raise QuestionError(f"option {name}={value}", expected=f"a whole number from 1 to {most:,}")
        if self.chips % (self.tensor * self.pipeline):
            raise QuestionError(
                f"groups of {self.tensor * self.pipeline} chips do not go into {self.chips} evenly",
                where="option tensor",
                expected="a divisor of the number of chips",
            )
        if not 0 < self.utilization <= 1:
            raise QuestionError(f"option utilization={self.utilization}", expected="a share above 0, at most 1")
        declared = 1 if self.weights_bytes is None else self.weights_bytes
        if self.hbm_bytes <= 0 or self.activations_bytes < 0 or declared <= 0:
            raise QuestionError("memory below nothing", expected="bytes from 0, and a chip with some memory")
        element_bytes(self.kv_precision)
        if self.weights_precision not in NAMES:
            raise QuestionError(f"precision {self.weights_precision!r}", expected=f"one of {', '.join(NAMES)}")

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self)}


@dataclass(frozen=True, kw_only=True)
class Room:
    """What one chip holds, in bytes. `spans`: cache of one sequence by kind of layer, rounded up to pages.

    `free_bytes`: what is left for caches, negative where the weights alone do not fit. `tokens`: tokens of sequences
    as long as `seq` that fit one group, all of the room used; `max_sequences`: whole sequences, of all chips.
    """

    setting: Setting
    kv_bytes_per_token: float
    total_weights_bytes: float
    chip_weights_bytes: float
    even_weights_bytes: float
    sequence_bytes: float
    exact_sequence_bytes: float
    even_sequence_bytes: float
    spans: tuple[Mapping[str, Any], ...]

    @property
    def usable_bytes(self) -> float:
        return self.setting.hbm_bytes * self.setting.utilization

    @property
    def kept_back_bytes(self) -> float:
        return self.setting.hbm_bytes - self.usable_bytes

    @property
    def free_bytes(self) -> float:
        return self.usable_bytes - self.chip_weights_bytes - self.setting.activations_bytes

    @property
    def lanes(self) -> int:
        """Sets of sequences that are kept apart: groups of chips that share weights, or single chips."""
        return (
            self.setting.chips
            // self.setting.pipeline
            // (1 if self.setting.attention == "data" else self.setting.tensor)
        )

    @property
    def lane_sequences(self) -> float:
        """Sequences of one lane, not rounded; negative where the weights do not fit."""
        return self.free_bytes / self.sequence_bytes

    @property
    def max_sequences(self) -> int:
        return self.lanes * max(int(self.lane_sequences + 1e-9), 0)

    @property
    def engine_tokens(self) -> int:
        """Tokens that one engine finds room for: it keeps one copy of the weights (`tensor` chips)."""
        lanes = self.setting.tensor if self.setting.attention == "data" else 1
        return max(int(self.free_bytes / self.sequence_bytes * self.setting.seq * lanes + 1e-6), 0)

    @property
    def cache_bytes(self) -> float:
        """Caches of the whole sequences on one chip."""
        return self.max_sequences / self.lanes * self.sequence_bytes

    @property
    def repeated_bytes(self) -> float:
        """The part of `cache_bytes` that other chips hold as well, beyond an even split."""
        return self.max_sequences / self.lanes * max(self.exact_sequence_bytes - self.even_sequence_bytes, 0.0)

    @property
    def rounding_share(self) -> float:
        """Part of a sequence's cache that only fills up its last pages."""
        return 1 - self.exact_sequence_bytes / self.sequence_bytes


def room(model: Model, setting: Setting) -> Room:
    """What one chip holds. Raises QuestionError for a precision that is not known."""
    s = setting
    split = 1 if s.attention == "data" else s.tensor
    total = weights_bytes(model, s.weights_precision)
    here = (
        chip_weights_bytes(model, s.weights_precision, s.tensor, s.attention == "tensor")
        if s.repeat
        else (total / s.tensor)
    )
    if s.weights_bytes is not None:  # declared: spread as the model's own would be
        here, total = here * s.weights_bytes / total, s.weights_bytes
    here /= s.pipeline
    kinds = [_span(kind, s, split) for kind in spans(model, s.kv_precision, split)]
    even = sum(k["exact_bytes"] / k["copies"] for k in kinds)
    if not s.repeat:
        kinds = [
            k | {"bytes": k["bytes"] / k["copies"], "exact_bytes": k["exact_bytes"] / k["copies"], "copies": 1.0}
            for k in kinds
        ]
    return Room(
        setting=s,
        kv_bytes_per_token=kv_bytes_per_token(model, s.kv_precision),
        total_weights_bytes=total,
        chip_weights_bytes=here,
        even_weights_bytes=total / s.tensor / s.pipeline,
        sequence_bytes=sum(k["bytes"] for k in kinds),
        exact_sequence_bytes=sum(k["exact_bytes"] for k in kinds),
        even_sequence_bytes=even,
        spans=tuple(kinds),
    )


def _span(kind: Any, setting: Setting, split: int) -> dict[str, Any]:
    kept = setting.seq if kind.window_tokens is None else min(setting.seq, kind.window_tokens)
    paged = ceil(kept / setting.page_tokens) * setting.page_tokens
    return {
        "name": kind.name,
        "layers": kind.layers,
        "window_tokens": kind.window_tokens,
        "tokens": kept,
        "exact_bytes": kind.bytes_per_token * kept / setting.pipeline,
        "bytes": kind.bytes_per_token * paged / setting.pipeline,
        "copies": kind.copies,
    }


def tensor_choices(model: Model, chips: int) -> tuple[int, ...]:
    """Powers of two that divide the chips and the query heads: ways to share the weights that engines take."""
    heads = min(a.heads for a in model.attention)
    return tuple(t for t in (1 << i for i in range(25)) if t <= chips and not chips % t and not heads % t)


def alternatives(model: Model, setting: Setting) -> list[tuple[str, str, Setting]]:
    """(what, why it gives room, the changed setting) of one change each that an operator could make."""
    found = []
    for precision, words in (("fp8", "8-bit caches take half of 16-bit ones"),):
        if BYTES[setting.kv_precision] > BYTES[precision]:
            found.append(("kv_precision", words, replace(setting, kv_precision=precision)))
    now, narrow = (weights_bytes(model, p) for p in (setting.weights_precision, "fp8-linear"))
    if narrow < now:
        found.append(
            (
                "weights_precision",
                "8-bit weights leave more room",
                replace(
                    setting,
                    weights_precision="fp8-linear",
                    weights_bytes=setting.weights_bytes and setting.weights_bytes * narrow / now,
                ),
            )
        )
    for tensor in tensor_choices(model, setting.chips // setting.pipeline):
        if tensor != setting.tensor:
            found.append(
                (
                    "tensor",
                    f"weights shared by {tensor:,} chip{'s' * (tensor > 1)} in place of {setting.tensor:,}",
                    replace(setting, tensor=tensor),
                )
            )
    if setting.tensor > 1:
        other = "data" if setting.attention == "tensor" else "tensor"
        words = "each chip keeps whole sequences of its own" if other == "data" else "sequences split by heads"
        found.append(("attention", words, replace(setting, attention=other)))
    return found


def curve(model: Model, setting: Setting, lengths: tuple[int, ...]) -> list[int]:
    """Most sequences at each length."""
    return [room(model, replace(setting, seq=n)).max_sequences for n in lengths]
