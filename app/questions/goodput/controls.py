"""The choices of the goodput page: which rules, over which time, of which attempt. All in the address."""

from typing import Any

import streamlit as st

from analyzers.lost.goodput.query import EXACT, LIBRARY
from analyzers.lost.goodput.result import GoodputResult
from app import format as fmt
from app.components.current import choose, chosen, switch

RULES = {EXACT: "Exact", LIBRARY: "ml-goodput"}
FIELDS = {  # in the address: option of the question, label, help
    "from": ("start", "From", "Start of the window: 2026-01-05T00:30:00Z, or seconds since 1970."),
    "to": ("end", "To", "End of the window, likewise."),
    "exclude": ("exclude", "Leave out", "START/END pairs, separated by commas: a planned pause, a demonstration."),
    "now": ("now", "As of", "Ask as of this time: a job without an end is taken to have run until then."),
}
WIDTHS = {"": "a 20th", "600": "10 min", "3600": "1 h", "21600": "6 h", "86400": "1 day", "604800": "7 days"}


def rules() -> str:
    """The switch between the rule sets; returns the one chosen."""
    return switch("Rules", "rules", RULES, EXACT)


def options() -> dict[str, Any]:
    """What the address asks for besides the rules, as options of the question."""
    given = {option: st.query_params[name] for name, (option, *_) in FIELDS.items() if st.query_params.get(name)}
    for name in ("attempt", "rolling_s"):
        if st.query_params.get(name, "").isdecimal():
            given[name] = st.query_params[name]
    return given


def time_fields(attempts: int | None) -> None:
    """A button that opens the window, what is left out of it, and the attempt. `attempts`: how many there are."""
    count = len(options().keys() - {"rolling_s"})
    label = "All of the job" if not count else fmt.count(count, "limit") + " set"
    with st.popover(label, icon=":material/date_range:"):
        for name, (_, text, about) in FIELDS.items():
            key = f"goodput {name}"
            if key not in st.session_state:
                st.session_state[key] = st.query_params.get(name, "")
            st.text_input(
                text,
                key=key,
                help=about,
                placeholder="not limited",
                on_change=lambda n=name, k=key: choose(n, st.session_state[k].strip()),
            )
        if attempts is not None and attempts > 1:
            names = ["", *map(str, range(attempts))]
            now = chosen("attempt", names, "")
            st.selectbox(
                "Attempt",
                names,
                index=names.index(now),
                key="goodput attempt",
                format_func=lambda k: f"attempt {k}" if k else "all of them",
                on_change=lambda: choose("attempt", st.session_state["goodput attempt"]),
            )
        if count:
            st.button("All of the job", on_click=_clear, icon=":material/close:")


def _clear() -> None:
    for name in (*FIELDS, "attempt"):
        choose(name, "")
        if name in FIELDS:
            st.session_state[f"goodput {name}"] = ""


def rolling_width(result: GoodputResult) -> None:
    """How far the rolling share looks back."""
    span = (result.end_ns - result.start_ns) / 1e9 if result.start_ns is not None and result.end_ns is not None else 0
    widths = {w: text for w, text in WIDTHS.items() if not w or float(w) < span}
    now = st.query_params.get("rolling_s", "")
    if now and now not in widths:
        widths[now] = fmt.duration(float(now)) if now.isdecimal() else now
    st.selectbox(
        "Rolling over",
        list(widths),
        index=list(widths).index(now),
        key="goodput rolling",
        width=130,
        format_func=widths.__getitem__,
        label_visibility="collapsed",
        on_change=lambda: choose("rolling_s", st.session_state["goodput rolling"]),
    )
