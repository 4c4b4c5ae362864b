"""The objectives of a page: seconds that are entered or dragged, kept in the address."""

import math
from collections.abc import Mapping

import streamlit as st

from app.components.current import choose

LABELS = {
    "ttft_s": "TTFT within (s)",
    "tpot_s": "TPOT within (s)",
    "e2e_s": "E2E within (s)",
    "itl_s": "p99 of gaps within (s)",
}
LARGEST = 1e6
NONE = "none"


def objectives(suggested: Mapping[str, float]) -> dict[str, float]:
    """Draws a field for each objective; what the address gives. `suggested` counts where it says nothing at all."""
    given = {name: st.query_params.get(name) for name in LABELS}
    start = suggested if not any(given.values()) else {}
    columns = st.columns(len(LABELS), vertical_alignment="bottom")
    found = {}
    for column, (name, label) in zip(columns, LABELS.items(), strict=True):
        with column:
            value = _field(name, label, _seconds(given[name], start.get(name)), suggested.get(name))
        if value is not None:
            found[name] = value
    return found


def _seconds(text: str | None, otherwise: float | None) -> float | None:
    """Seconds above 0 that a text says; what it does not say is `otherwise`."""
    if text is None:
        return otherwise
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 < value < LARGEST else None


def _field(name: str, label: str, now: float | None, suggestion: float | None) -> float | None:
    key = f"objective_{name}"
    if st.session_state.get(key) != now:
        st.session_state[key] = now

    def changed() -> None:
        value = st.session_state[key]
        every = {n: st.session_state.get(f"objective_{n}") for n in LABELS}
        for (
            other,
            seconds,
        ) in every.items():  # what was only suggested becomes part of the address with the first change
            choose(other, f"{seconds:g}" if seconds else "")
        if not value and not any(every.values()):
            choose(name, NONE)

    step = 10.0 ** (math.floor(math.log10(now or suggestion or 1.0)) - 1)
    st.number_input(
        label, 0.0, LARGEST, value=None, step=step, format="%g", key=key, on_change=changed, placeholder="no objective"
    )
    return now
