"""The choices of the prefix cache page: whose blocks, how many, whose cache. All in the address."""

from typing import Any

import streamlit as st

from analyzers.serving.prefix_cache import OPTIONS
from app.components.model_picker import About
from app.components.option import by_name, control
from app.questions.asking import ask
from app.questions.prefix_cache import PREFIX_CACHE
from catalog.models import models

CACHES = {"replica": "Each replica its own", "shared": "One for all"}
_OPTIONS = by_name(OPTIONS)


def controls(about: About) -> dict[str, Any]:
    """Model (for bytes), size of the cache, and whether replicas share one. Returns the options that differ."""
    base = ask(PREFIX_CACHE, about.subject, {}, about.place.registry)
    if not base.replayed:
        return {}
    given: dict[str, Any] = {}
    row = st.columns([2, 1, 2], vertical_alignment="bottom")
    with row[0]:
        if base.block_tokens is not None:
            own = "Sizes in blocks" if base.block_bytes is None else "The run's own model"
            now = control(_OPTIONS["model"], texts={m: m for m in models()}, unset=own, label="Blocks of")
            given |= {"model": now} if now else {}
    with row[1]:
        default = base.size_blocks or base.enough_blocks or 1
        size = control(_OPTIONS["blocks"], default, step=max(default // 10, 1), always=True)
        given |= {} if size == base.size_blocks else {"blocks": size}
    if base.caches > 1:
        with row[2]:
            choice = control(_OPTIONS["caches"], "replica", texts=CACHES, buttons=True)
            given |= {} if choice == "replica" else {"caches": choice}
    return given
