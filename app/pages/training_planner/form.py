"""The question to the training planner: model, tokens, chips, limits and axes, kept in the address under the names of
the command's options."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from app.components.option import by_name, field, in_address
from app.whatif.training.asked import OPTIONS, REMAT, Asked
from catalog import chips, models

EXAMPLE = {
    "model": "llama3.1-70b",
    "on": "TPU v5p,TPU v6e,H100 SXM",
    "tokens": "2e12",
    "days": "30",
    "usd": "4000000",
    "price": "TPU v5p=4.2,TPU v6e=2.7,H100 SXM=3",
}
ROWS = (
    ("tokens", "days", "usd", "chips"),
    ("seq", "global_batch_tokens", "precision", "remat"),
    ("layout", "goodput", "price", "calibrate"),
)
USUAL = {"remat": REMAT}  # where nothing is said
_OPTIONS = by_name(OPTIONS)


def asked() -> Asked:
    """What the address asks. Raises QuestionError for what cannot be."""
    return Asked(**in_address(OPTIONS))


def training_form(now: Mapping[str, Any]) -> None:
    """The form; sent, it writes everything into the address. `now`: what holds, by option."""
    with st.form("training-plan", border=True):
        left, right = st.columns([1, 2])
        with left:
            model = field(_OPTIONS["model"], now.get("model"), words=list(models()))
        wanted = [n.strip() for n in str(now.get("on") or "").split(",")]
        on = right.multiselect(_OPTIONS["on"].title, list(chips()), [c for c in chips() if c in wanted])
        entered: dict[str, str] = {}
        for row in ROWS:
            for name, column in zip(row, st.columns(len(row)), strict=True):
                with column:
                    entered[name] = field(_OPTIONS[name], now.get(name) or USUAL.get(name))
        if not st.form_submit_button("Plan", type="primary", icon=":material/calculate:"):
            return
    sent = {**entered, "model": model, "on": ",".join(on)}
    st.query_params.from_dict({n: v.strip() for n, v in sent.items() if v.strip()})
    st.rerun()
