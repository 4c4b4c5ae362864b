"""The question to the serving planner: model, chips, traffic, objectives and prices, sent together and kept in the
address under the names of the command's options."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from app.components.option import by_name, field, in_address
from app.whatif.serving_plan.asked import OPTIONS, Asked
from app.words import sentence
from catalog import chips, models

EXAMPLE = {
    "model": "llama3.1-70b",
    "on": "TPU v6e,H100 SXM,B200",
    "input": "1000",
    "output": "300",
    "rate": "20",
    "ttft_s": "1",
    "tpot_s": "0.04",
}
NUMBERS = (
    ("input", "output", "rate", "prefix", "burst"),
    ("ttft_s", "tpot_s", "e2e_s", "percentile", "max_sequences"),
)
KEPT = ("formats", "stage", "ran", "token_budget")  # without a field, but in the address where somebody wrote them
OWN = '{"name": "Card X", "like": "RTX PRO 6000 Workstation", "hbm_bytes_per_s": 1.6e12, "usd_per_chip_hour": 1.2}'
_OPTIONS = by_name(o for o in OPTIONS if not o.local)


def asked() -> Asked:
    """What the address asks. Raises QuestionError for what cannot be."""
    return Asked(**in_address(_OPTIONS.values()))


def serving_form(now: Mapping[str, Any], runs: Mapping[str, str]) -> None:
    """The form; sent, it writes everything into the address. `now`: what holds, by option; `runs`: names of measured
    runs by id."""
    with st.form("serving-plan", border=True):
        left, right = st.columns([1, 2])
        names = list(models())
        with left:
            model = field(_OPTIONS["model"], now.get("model"), words=names)
        wanted = [n.strip() for n in str(now.get("on") or "").split(",")]
        on = right.multiselect(_OPTIONS["on"].title, list(chips()), [c for c in chips() if c in wanted])
        entered: dict[str, str] = {}
        for row in NUMBERS:
            for name, column in zip(row, st.columns(len(row)), strict=True):
                with column:
                    entered[name] = field(_OPTIONS[name], now.get(name))
        left, middle, right = st.columns([2, 1, 1], vertical_alignment="bottom")
        with left:
            entered["price"] = field(_OPTIONS["price"], now.get("price"), suggestion(on))
        named = now.get("calibrate")
        fitted = middle.selectbox(
            _OPTIONS["calibrate"].title,
            list(runs),
            index=list(runs).index(named) if named in runs else None,
            format_func=lambda i: runs[i],
            placeholder="no run: assumed shares",
            help=f"{sentence(_OPTIONS['calibrate'].help)}.",
        )
        pools = right.toggle(
            _OPTIONS["disaggregate"].title,
            now.get("disaggregate") == "yes",
            help="Prefill and decode on machines of their own, for the setup that wins.",
        )
        entered["own_chip"] = field(_OPTIONS["own_chip"], now.get("own_chip"), OWN, lines=True)
        if not st.form_submit_button("Plan", type="primary", icon=":material/calculate:"):
            return
    sent = {
        **entered,
        "model": model,
        "on": ",".join(on),
        "calibrate": fitted or "",
        "disaggregate": "yes" if pools else "",
        **{name: st.query_params.get(name, "") for name in KEPT},
    }
    st.query_params.from_dict({n: v.strip() for n, v in sent.items() if v.strip()})
    st.rerun()


def suggestion(names: list[str]) -> str:
    """List prices of these chips as the field wants them; they are suggestions that nobody has verified."""
    known = {n: chips()[n].price_suggestion for n in names}
    return ",".join(f"{n}={p.usd_per_chip_hour:g}" for n, p in known.items() if p) or "v6e=2.7,h100=3.5"
