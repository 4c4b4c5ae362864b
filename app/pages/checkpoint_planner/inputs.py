"""The numbers that a plan for checkpoints rests on: each an input, kept in the address under the name of its option."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import streamlit as st

from app import theme
from app.components.current import choose
from app.components.option import by_name, control, in_address, said
from app.whatif.checkpoint.asked import OPTIONS, Asked
from errors import format as fmt
from errors.options import Option

_OPTIONS = by_name(o for o in OPTIONS if not o.of_run)
MAIN = ("save_s", "mttf_s", "wait_s", "restart_s", "interval_s")
MORE = (
    "blocked_s",
    "nodes",
    "failures_per_1000_node_days",
    "slices",
    "resume_s",
    "chips",
    "span_s",
    "usd_per_chip_hour",
)
INSTEAD = {"failures_per_1000_node_days": "mttf_s", "mttf_s": "failures_per_1000_node_days"}  # the one entered last


def given() -> dict[str, Any]:
    """The numbers in the address. Raises QuestionError for one that cannot be."""
    return in_address(_OPTIONS.values())


def plan_inputs(known: Asked, basis: Mapping[str, str], follows: Mapping[str, float] = MappingProxyType({})) -> None:
    """A row of inputs and, in a popover, the rest. `known`: what holds unless something is entered, with its basis;
    `follows`: what follows from other inputs where it is not entered itself."""
    row = st.columns([*[1] * len(MAIN), 0.6], vertical_alignment="bottom")
    for column, name in zip(row, MAIN, strict=False):
        with column:
            _input(_OPTIONS[name], getattr(known, name), basis.get(name), follows.get(name))
    with row[-1].popover("More", icon=":material/tune:"):
        for name in MORE:
            _input(_OPTIONS[name], getattr(known, name), basis.get(name))
    entered = [name for name in _OPTIONS if st.query_params.get(name)]
    if entered and basis and st.button("Back to what the run measured", icon=":material/undo:", type="tertiary"):
        for name in entered:
            choose(name, "")
        st.rerun()


def _input(option: Option, known: float | None, basis: str | None, follows: float | None = None) -> None:
    now = said(option, known)
    if said(option) is None and basis is not None:
        mark = theme.mark(basis)
        label, how = f"{option.title} {mark.glyph}", f" \n\n{mark.glyph} {mark.word}: {mark.meaning}."
    else:
        label, how = option.title + (" ◇" if now is not None else ""), ""

    def entered(value: float | None) -> None:
        if value is not None and option.name in INSTEAD:
            choose(INSTEAD[option.name], "")

    words = f" Now {fmt.duration(now)}." if option.unit == "s" and now else ""
    empty = "–" if follows is None else f"{follows:.6g}, by the rate"
    control(option, known, label=label, more=words + how, empty=empty, entered=entered)
