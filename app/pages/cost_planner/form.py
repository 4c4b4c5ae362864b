"""The question to the cost planner: model, tokens, chips, limits and rates, sent together and kept in the address under
the names of the command's options."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from app.components.option import by_name, field, in_address
from app.whatif.cost.asked import OPTIONS, Asked
from catalog import chips, models

EXAMPLE = {
    "model": "llama3.1-70b",
    "on": "TPU v5p,TPU v6e,H100 SXM",
    "tokens": "2e12",
    "days": "30",
    "usd": "4000000",
    "price": "TPU v5p=4.2,TPU v6e=2.7,H100 SXM=3",
}
ROWS = (("tokens", "days", "usd", "chips"), ("mfu", "goodput", "seq", "precision"))
_OPTIONS = by_name(OPTIONS)


def asked() -> Asked:
    """What the address asks. Raises QuestionError for what cannot be."""
    return Asked(**in_address(OPTIONS))


def cost_form(now: Mapping[str, Any]) -> None:
    """The form; sent, it writes everything into the address. `now`: what holds, by option."""
    with st.form("cost-plan", border=True):
        left, right = st.columns([1, 2])
        with left:
            model = field(_OPTIONS["model"], now.get("model"), words=list(models()))
        wanted = [n.strip() for n in str(now.get("on") or "").split(",")]
        on = right.multiselect(_OPTIONS["on"].title, list(chips()), [c for c in chips() if c in wanted])
        entered: dict[str, str] = {}
        for row in ROWS:
            for name, column in zip(row, st.columns(len(row)), strict=True):
                with column:
                    entered[name] = field(_OPTIONS[name], now.get(name))
        prices, team = st.columns([3, 1])
        with prices:
            entered["price"] = field(_OPTIONS["price"], now.get("price"), "v5p=4.2,h100=3")
        with team:
            entered["developers"] = field(_OPTIONS["developers"], now.get("developers"))
        if not st.form_submit_button("Plan", type="primary", icon=":material/calculate:"):
            return
    sent = {**entered, "model": model, "on": ",".join(on)}
    st.query_params.from_dict({n: v.strip() for n, v in sent.items() if v.strip()})
    st.rerun()
