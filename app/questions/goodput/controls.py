"""The choices of the goodput page: which rules, over which time, of which attempt. All in the address."""

from typing import Any

import streamlit as st

from analyzers.lost.goodput import OPTIONS
from analyzers.lost.goodput.query import EXACT, LIBRARY
from analyzers.lost.goodput.result import GoodputResult
from app.components.current import choose
from app.components.model_picker import About
from app.components.option import by_name, control
from app.questions.goodput.both import tried
from errors import format as fmt

RULES = {EXACT: "Exact", LIBRARY: "ml-goodput"}
TIMES = {"from": "start", "to": "end", "exclude": "exclude", "now": "now"}  # in the address: option of the question
WIDTHS = {"600": "10 min", "3600": "1 h", "21600": "6 h", "86400": "1 day", "604800": "7 days"}
_OPTIONS = by_name(OPTIONS)


def options(about: About) -> dict[str, Any]:
    """Draws the choices; returns the options of the question."""
    whole = tried(about, {})
    with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center"):
        wanted = control(_OPTIONS["rules"], EXACT, texts=RULES, buttons=True)
        time_fields(len(whole.attempts) if whole else None)
    return {**limits(), "rules": wanted}


def limits() -> dict[str, Any]:
    """What the address asks for besides the rules, as options of the question."""
    given = {option: st.query_params[name] for name, option in TIMES.items() if st.query_params.get(name)}
    for name in ("attempt", "rolling_s"):
        if st.query_params.get(name, "").isdecimal():
            given[name] = st.query_params[name]
    return given


def time_fields(attempts: int | None) -> None:
    """A button that opens the window, what is left out of it, and the attempt. `attempts`: how many there are."""
    count = len(limits().keys() - {"rolling_s"})
    label = "All of the job" if not count else fmt.count(count, "limit") + " set"
    with st.popover(label, icon=":material/date_range:"):
        for name, option in TIMES.items():
            control(_OPTIONS[option], name=name, empty="not limited")
        if attempts is not None and attempts > 1:
            texts = {str(k): f"attempt {k}" for k in range(attempts)}
            control(_OPTIONS["attempt"], texts=texts, unset="all of them")
        if count:
            st.button("All of the job", on_click=_clear, icon=":material/close:")


def _clear() -> None:
    for name in (*TIMES, "attempt"):
        choose(name, "")


def rolling_width(result: GoodputResult) -> None:
    """How far the rolling share looks back."""
    span = (result.end_ns - result.start_ns) / 1e9 if result.start_ns is not None and result.end_ns is not None else 0
    widths = {w: text for w, text in WIDTHS.items() if float(w) < span}
    now = st.query_params.get("rolling_s", "")
    if now and now not in widths:
        widths[now] = fmt.duration(float(now)) if now.isdecimal() else now
    control(_OPTIONS["rolling_s"], texts=widths, unset="a 20th", hidden=True, width=130)
