"""What an answer assumes of its subject, each to be replaced: the choice goes into the address, the page asks again."""

from collections.abc import Callable, Mapping

import streamlit as st

from app.components.current import choose
from catalog.chips import chips
from catalog.models import models

LENGTHS = [str(1 << n) for n in range(10, 21)]
FORMATS = ["bf16", "fp16", "fp8", "int8", "fp4"]


CHOICES: dict[str, tuple[str, Callable[[], list[str]]]] = {  # name in the address: label, what to choose from
    "model": ("Model", lambda: list(models())),
    "chip": ("Chip", lambda: list(chips())),
    "seq": ("Sequence length (tokens)", lambda: LENGTHS),
    "precision": ("Number format of the maths", lambda: FORMATS),
    "remat": ("Recomputation", lambda: ["none", "selective", "full"]),
}


def assumptions(known: Mapping[str, str | None]) -> None:
    """A button that opens all choices; `known`: what holds unless something is chosen."""
    with st.popover("What is assumed", icon=":material/tune:"):
        for name in CHOICES:
            choice(name, known.get(name))


def choice(name: str, known: str | None, place: str = "assume") -> None:
    """One select box; `place` tells two of the same choice on a page apart."""
    label, options = CHOICES[name]
    key = f"{place}_{name}"
    said = st.query_params.get(name)
    offered = options()
    offered = offered if said is None or said in offered else [said, *offered]
    st.selectbox(
        label,
        offered,
        index=offered.index(said) if said else None,
        key=key,
        placeholder=known or "not known",
        on_change=lambda: choose(name, st.session_state[key] or ""),
    )
