"""The choices of the KV cache page: chips, how weights and caches are spread over them, formats. All in the address."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from analyzers.serving.kv_cache import OPTIONS, KvResult
from analyzers.serving.kv_cache.room import Setting, tensor_choices
from app.components.model_picker import About
from app.components.option import by_name, control
from app.questions.asking import ask
from app.questions.kv_cache import KV_CACHE
from catalog.chips import chips

CHIP, CHIPS, SEQ = "TPU v6e", 8, 8192  # of a model alone, before anybody chose
CACHES = ("bf16", "fp8", "int8", "fp4")
WEIGHTS = ("bf16", "published", "fp8", "int8", "fp4", "int4", "mxfp4", "nvfp4", "awq", "gptq", "float32")
UTILIZATIONS = ("0.7", "0.8", "0.85", "0.9", "0.92", "0.95", "1.0")
PAGES = (1, 16, 32, 64, 128, 256, 512)
RESERVES = ("0", "0.5", "1", "2", "4", "8")
_OPTIONS = by_name(OPTIONS)
ATTENTION = {"tensor": "Split by heads", "data": "Whole, one chip each"}


def options(about: About) -> dict[str, Any]:
    """Draws the choices; returns the options to ask with."""
    own = {"model": about.model} if about.run and about.model else {}
    return own | controls(ask(KV_CACHE, about.subject, own, about.place.registry), about.run is not None)


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
        chip_count = control(_OPTIONS["chips"], own.chips if own else 1 if of_run else CHIPS, step=1, always=True)
    with first[2]:
        tensor = _tensor(base, own, chip_count)
    with first[3]:
        attention = control(_OPTIONS["attention"], own.attention if own else "tensor", texts=ATTENTION)
    with first[4]:
        seq = control(_OPTIONS["seq"], base.seq if own else SEQ, step=512, always=True, label="Tokens of a sequence")
    given |= {"chips": chip_count, "tensor": tensor, "attention": attention, "seq": seq}
    with second[0]:
        given["kv_precision"] = _list("kv_precision", CACHES, own.kv_precision if own else "bf16")
    with second[1]:
        given["weights_precision"] = _list("weights_precision", WEIGHTS, own.weights_precision if own else "bf16")
    with second[2]:
        given["utilization"] = _list("utilization", UTILIZATIONS, own.utilization if own else 0.9)
    with second[3]:
        given["activations_bytes"] = 1e9 * control(
            _OPTIONS["activations_bytes"],
            0,
            texts={r: r for r in RESERVES},
            label="For activations (GB)",
            name="activations",
        )
    with second[4]:
        given["page_tokens"] = _list("page_tokens", [str(p) for p in PAGES], own.page_tokens if own else 16)
    return {k: v for k, v in given.items() if own is None or k == "chip" or v != getattr(own, k)}


def _list(name: str, values: Sequence[str], default: Any) -> Any:
    """A list that has the default among its values, whatever it is."""
    return control(_OPTIONS[name], default, texts={v: v for v in values})


def _chip(base: KvResult, of_run: bool) -> dict[str, str]:
    """The chip, where it is not the one that the subject names."""
    default = base.chip or (None if of_run else CHIP)
    unset = None if default else "As the run has it"
    now = control(_OPTIONS["chip"], default, texts={name: name for name in chips()}, unset=unset)
    return {} if now in (base.chip, None) else {"chip": now}


def _tensor(base: KvResult, own: Setting | None, chip_count: int) -> int:
    """Chips that share one copy of the weights, of those ways that the heads allow."""
    ways = {*tensor_choices(base.model, chip_count)}
    if own and not chip_count % own.tensor:
        ways.add(own.tensor)
    default = own.tensor if own and own.tensor in ways else max(ways)
    texts = {str(t): f"TP {t}" + (f", {chip_count // t:,} copies" if t < chip_count else "") for t in sorted(ways)}
    return control(_OPTIONS["tensor"], default, texts=texts)
