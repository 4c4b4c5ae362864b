"""Up to five figures, each with its definition and how it is known."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import streamlit as st

from app import theme


@dataclass(frozen=True)
class Figure:
    """A number to show: label, value with unit, what it means, and its basis. `amount`: the number itself; `better`:
    which way is (more, less or empty: neither); `alike`: what must be the same of two runs for it to be compared, such
    as a convention."""

    label: str
    value: str
    meaning: str
    basis: str
    amount: float | None = None
    better: Literal["", "more", "less"] = ""
    alike: str = ""


def figures_row(figures: list[Figure], changes: Mapping[str, tuple[str, str]] | None = None) -> None:
    """The figures side by side; the glyph behind a label says how its number is known, the help says it in words.
    `changes`: against a baseline, by label: the change, and which way is better."""
    row = st.container(horizontal=True)
    for figure in figures:
        mark = theme.mark(figure.basis)
        text = f"{figure.meaning} \n\n{mark.glyph} {mark.word}: {mark.meaning}."
        change, way = (changes or {}).get(figure.label, (None, ""))
        colour = "inverse" if way == "less" else "normal"
        row.metric(
            f"{figure.label} {mark.glyph}", figure.value, delta=change, delta_color=colour, help=text, border=True
        )
