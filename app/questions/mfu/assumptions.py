"""What an answer assumes of its subject, each to be replaced: the choice goes into the address, the page asks again."""

from collections.abc import Callable, Mapping

import streamlit as st

from analyzers.flops.formats import PRECISIONS
from analyzers.flops.mfu import CONVENTION, OPTIONS
from app.components.option import by_name, control, said
from catalog.chips import chips
from catalog.models import models

_OPTIONS = by_name(OPTIONS)
LENGTHS = [str(1 << n) for n in range(10, 21)]
OFFERED: dict[str, Callable[[], list[str]]] = {  # where the option itself does not say which
    "model": lambda: list(models()),
    "chip": lambda: list(chips()),
    "seq": lambda: LENGTHS,
    "precision": lambda: list(PRECISIONS),
}
CHOICES = (*OFFERED, "remat")
ASKED = (*CHOICES, CONVENTION.name)  # in the address as in the API


def asked() -> dict[str, str]:
    """What is asked of another model, chip or count, from the address."""
    return {name: st.query_params[name] for name in ASKED if st.query_params.get(name)}


def assumptions(known: Mapping[str, str | None]) -> None:
    """A button that opens all choices; `known`: what holds unless something is chosen."""
    with st.popover("What is assumed", icon=":material/tune:"):
        for name in CHOICES:
            choice(name, known.get(name))


def choice(name: str, known: str | None, place: str = "assume") -> None:
    """One list; `place` tells two of the same choice on a page apart."""
    texts, now = None, said(_OPTIONS[name])
    if name in OFFERED:
        texts = {v: v for v in (*OFFERED[name](), *([] if now is None else [str(now)]))}
    own = (known or "not known") if now is None else "As the run has it"  # what is chosen is what is known then
    control(_OPTIONS[name], texts=texts, unset=own, key=f"{place}_{name}")


def convention(titles: Mapping[str, str], default: str) -> None:
    """The switch between counts of FLOPs; `titles`: of those offered."""
    control(CONVENTION, default, texts=titles, buttons=True, key="switch_convention")
