"""Up to five figures, each with its definition and how it is known."""

from dataclasses import dataclass

import streamlit as st

from app import theme


@dataclass(frozen=True)
class Figure:
    """A number to show: label, value with unit, what it means, and its basis."""

    label: str
    value: str
    meaning: str
    basis: str


def figures_row(figures: list[Figure]) -> None:
    """The figures side by side; the glyph behind a label says how its number is known, the help says it in words."""
    row = st.container(horizontal=True)
    for figure in figures:
        mark = theme.mark(figure.basis)
        text = f"{figure.meaning} \n\n{mark.glyph} {mark.word}: {mark.meaning}."
        row.metric(f"{figure.label} {mark.glyph}", figure.value, help=text, border=True)
