"""The objectives of a page: seconds that are entered or dragged, kept in the address."""

import math
from collections.abc import Mapping

import streamlit as st

from analyzers.serving.objectives import LABELS, OPTIONS
from app.components.current import choose
from app.components.option import by_name, control

NONE = "none"
_OPTIONS = by_name(OPTIONS)


def objectives(suggested: Mapping[str, float]) -> dict[str, float]:
    """Draws a field for each objective; what the address gives. `suggested` counts where it says nothing at all."""
    start = {} if any(st.query_params.get(name) for name in LABELS) else suggested
    columns = st.columns(len(LABELS), vertical_alignment="bottom")
    found: dict[str, float] = {}

    def entered(name: str, value: float | None) -> None:
        """What was only suggested becomes part of the address with the first change."""
        now = {**start, **found, name: value}
        for other in LABELS:
            choose(other, f"{now[other]:g}" if now.get(other) else "")
        if not any(now.values()):
            choose(name, NONE)

    for column, name in zip(columns, LABELS, strict=True):
        step = 10.0 ** (math.floor(math.log10(start.get(name) or suggested.get(name) or 1.0)) - 1)
        with column:
            value = control(
                _OPTIONS[name],
                start.get(name),
                step=step,
                empty="no objective",
                entered=lambda value, name=name: entered(name, value),
            )
        if value is not None:
            found[name] = value
    return found
