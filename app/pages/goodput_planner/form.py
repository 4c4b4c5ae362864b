"""The numbers that lives of a job rest on: each a control, kept in the address under the name of its option."""

from collections.abc import Mapping
from typing import Literal

import streamlit as st

from app.components.option import by_name, control, in_address, said
from app.whatif.goodput.asked import DAYS, OPTIONS, TRIALS, Asked
from app.whatif.goodput.failing import LOCAL_SHARE, REPAIR_H, SLICES
from errors import format as fmt
from simulators.training import claim

EXAMPLE = {"chips": "16384", "mttf_chip_h": "50000", "save_s": "30", "restart_s": "300", "wait_s": "600"}
CLAIM = {
    "chips": f"{claim.CHIPS}",
    "mttf_chip_h": f"{claim.MTTF_CHIP_H[0]:.6g}",
    "save_s": f"{claim.SAVE_S:g}",
    "restart_s": f"{claim.RESTART_S:g}",
    "wait_s": f"{claim.WAITS_S[1]:g}",
    "elastic": "true",
    "slices": f"{claim.SLICES}",
    "resume_s": f"{claim.RESUME_S:g}",
}
MAIN = ("chips", "mttf_chip_h", "save_s", "restart_s", "wait_s")
GROUPS = {
    "Saves": ("interval_s", "blocked_s", "local_save_s", "local_restart_s", "local_share", "saves_per_remote"),
    "Spares": ("spares", "repair_h"),
    "Lives": ("days", "trials", "seed"),
}
ELASTIC = ("slices", "resume_s")
_OPTIONS = by_name(OPTIONS)
_EMPTY: Mapping[str, str] = {
    "slices": f"{SLICES}",
    "repair_h": f"{REPAIR_H:g}",
    "local_share": f"{LOCAL_SHARE:g}",
    "days": f"{DAYS:g}",
    "trials": f"{TRIALS:,}",
}


def asked() -> Asked:
    """What the address asks. Raises QuestionError for what cannot be."""
    return Asked(**in_address(OPTIONS))


def controls() -> None:
    """A row of numbers, the switch to elastic training with what it takes, and the rest in popovers."""
    for column, name in zip(st.columns(len(MAIN)), MAIN, strict=True):
        with column:
            _number(name)
    row = st.container(horizontal=True, vertical_alignment="bottom")
    with row:
        elastic = control(_OPTIONS["elastic"], False, width="content", label="Elastic training")
        if elastic or any(st.query_params.get(name) for name in ELASTIC):
            for name in ELASTIC:
                _number(name, 220)
        for title, names in GROUPS.items():
            with st.popover(title, icon=":material/tune:"):
                for name in names:
                    _number(name)


def _number(name: str, width: int | Literal[""] = "") -> None:
    now = said(_OPTIONS[name])
    words = f" Now {fmt.duration(now)}." if _OPTIONS[name].unit == "s" and now else ""
    control(_OPTIONS[name], None, more=words, empty=_EMPTY.get(name, "–"), width=width)
