"""The choices of the KV cache page: chips, how weights and caches are spread over them, formats. All in the address."""

from typing import Any

import streamlit as st

from analyzers.serving.kv_cache import KvResult
from analyzers.serving.kv_cache.room import Setting, tensor_choices
from app.components.model_picker import enter, pick
from catalog.chips import chips

CHIP, CHIPS, SEQ = "TPU v6e", 8, 8192  # of a model alone, before anybody chose
NONE = "none"
CACHES = ("bf16", "fp8", "int8", "fp4")
WEIGHTS = ("bf16", "published", "fp8", "int8", "fp4", "int4", "mxfp4", "nvfp4", "awq", "gptq", "float32")
UTILIZATIONS = ("0.7", "0.8", "0.85", "0.9", "0.92", "0.95", "1.0")
PAGES = (1, 16, 32, 64, 128, 256, 512)
RESERVES = ("0", "0.5", "1", "2", "4", "8")
ATTENTION = {"tensor": "Split by heads", "data": "Whole, one chip each"}


def controls(base: KvResult, of_run: bool) -> dict[str, Any]:
    """Draws them; returns the options that differ from what `base` rests on.

    Without a model there are none; of a run on a chip that is not known, there is the chip alone until one is chosen.
    """
    if base.model is None:
        return {}
    own = base.room.setting if base.room else None
    first = st.columns(5, vertical_alignment="bottom")
    with first[0]:
        given: dict[str, Any] = _chip(base, of_run)
    if own is None and not given:
        return {}
    second = st.columns(5, vertical_alignment="bottom")
    with first[1]:
        chip_count = enter("Chips", "chips", own.chips if own else 1 if of_run else CHIPS, 1)
    with first[2]:
        tensor = _tensor(base, own, chip_count)
    with first[3]:
        attention = pick("Sequences", "attention", ATTENTION, own.attention if own else "tensor")
    with first[4]:
        seq = enter("Tokens of a sequence", "seq", base.seq if own else SEQ, 512)
    given |= {"chips": chip_count, "tensor": tensor, "attention": attention, "seq": seq}
    with second[0]:
        given["kv_precision"] = _list("Cache", "kv_precision", CACHES, own.kv_precision if own else "bf16")
    with second[1]:
        given["weights_precision"] = _list(
            "Weights", "weights_precision", WEIGHTS, own.weights_precision if own else "bf16"
        )
    with second[2]:
        given["utilization"] = float(
            _list("Share for the engine", "utilization", UTILIZATIONS, f"{own.utilization:g}" if own else "0.9")
        )
    with second[3]:
        given["activations_bytes"] = 1e9 * float(_list("For activations (GB)", "activations", RESERVES, "0"))
    with second[4]:
        given["page_tokens"] = int(
            _list("Tokens of a page", "page_tokens", [str(p) for p in PAGES], str(own.page_tokens) if own else "16")
        )
    return {k: v for k, v in given.items() if own is None or k == "chip" or v != getattr(own, k)}


def _list(label: str, name: str, values: list[str] | tuple[str, ...], default: str) -> str:
    """A list that has the default among its values, whatever it is."""
    return pick(label, name, {v: v for v in [*values, *([] if default in values else [default])]}, default)


def _chip(base: KvResult, of_run: bool) -> dict[str, str]:
    """The chip, where it is not the one that the subject names."""
    default = base.chip or (NONE if of_run else CHIP)
    names = ({NONE: "As the run has it"} if default == NONE else {}) | {name: name for name in chips()}
    now = pick("Chip", "chip", names, default)
    return {} if now in (base.chip, NONE) else {"chip": now}


def _tensor(base: KvResult, own: Setting | None, chip_count: int) -> int:
    """Chips that share one copy of the weights, of those ways that the heads allow."""
    ways = {*tensor_choices(base.model, chip_count)}
    if own and not chip_count % own.tensor:
        ways.add(own.tensor)
    default = own.tensor if own and own.tensor in ways else max(ways)
    texts = {str(t): f"TP {t}" + (f", {chip_count // t:,} copies" if t < chip_count else "") for t in sorted(ways)}
    return int(pick("Weights shared by", "tensor", texts, str(default)))
