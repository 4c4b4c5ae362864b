"""The question to the training planner: model, tokens, chips, limits and axes, kept in the address under the names of
the command's options."""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from app.components.option import by_name, field, in_address
from app.whatif.training.asked import OPTIONS, REMAT, Asked
from catalog import chip as find_chip
from catalog import chips, models
from catalog import model as find_model
from catalog.chips import Chip
from catalog.models import Model
from errors import QuestionError

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
    ("mttf_chip_h", "save_s", "restart_s", "wait_s"),
    ("spares", "elastic", "slices", "resume_s"),
)
USUAL = {"remat": REMAT}  # where nothing is said
_OPTIONS = by_name(OPTIONS)


def asked() -> Asked:
    """What the address asks. Raises QuestionError for what cannot be."""
    return Asked(**in_address(OPTIONS))


def training_form(now: Mapping[str, Any]) -> None:
    """The form; sent, it writes everything into the address. `now`: what was asked, by option, by any usual names; what
    was not asked shows what holds then."""
    with st.form("training-plan", border=True):
        left, right = st.columns([1, 2])
        with left:
            model = field(_OPTIONS["model"], _named(find_model, now.get("model")), words=list(models()))
        wanted = {_named(find_chip, n) for n in str(now.get("on") or "").split(",")}
        on = right.multiselect(_OPTIONS["on"].title, list(chips()), [c for c in chips() if c in wanted])
        entered: dict[str, str] = {}
        for row in ROWS:
            for name, column in zip(row, st.columns(len(row)), strict=True):
                with column:
                    entered[name] = field(_OPTIONS[name], _held(name, now))
        if not st.form_submit_button("Plan", type="primary", icon=":material/calculate:"):
            return
    sent = {**entered, "model": model, "on": ",".join(on)}
    st.query_params.from_dict({n: v.strip() for n, v in sent.items() if v.strip()})
    st.rerun()


def _held(name: str, now: Mapping[str, Any]) -> Any:
    """What was asked, else what holds where nothing is."""
    asked = now.get(name)
    return USUAL.get(name, _OPTIONS[name].default or None) if asked in (None, "", False) else asked


def _named(find: Callable[[str], Chip | Model], text: Any) -> str | None:
    """The catalogue's name of what was named; None where nothing is called so."""
    try:
        return find(str(text).strip()).name if text else None
    except QuestionError:
        return None
