"""Operations on a page: which part of a run is asked about, and the table from which one is chosen; all in the URL."""

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
import streamlit as st

from analyzers.device.op_units import MODULE
from app.components.columns import draw_table
from app.components.option import control
from app.questions.base import Question
from errors.options import Option
from runs.run import Run

SEARCH = Option("q", str, None, "words that must all occur in a row, in any column of text", label="Search")
MAX_ROWS = 2000  # what a browser is sent; the files hold all
WHERE = ("module", "host", "device", "line", "chip", "precision", "peak_flops_per_s", "hbm_bytes_per_s", "clock_hz")
_FIRST = (
    "op",
    "source",
    "category",
    "self_seconds",
    "share",
    "roof_share",
    "wasted_seconds",
    "bound",
    "flops_per_s",
    "bytes_per_s",
    "flops_per_byte",
    "count",
    "mean_execution_seconds",
    "least_execution_seconds",
    "longest_execution_seconds",
    "recomputed_share",
    "scope",
    "framework_op",
    "kernel",
    "launch_shape",
)


def asked() -> dict[str, str]:
    """The options of the questions about operations that the address gives."""
    return {name: st.query_params[name] for name in WHERE if st.query_params.get(name)}


def everything(question: Question[Any]) -> Callable[[Run, Mapping[str, Any]], None]:
    """What helps where there is no answer: the way to all of the run, where the address asks for a part of it."""

    def way(run: Run, given: Mapping[str, Any]) -> None:
        if given:
            st.page_link(question.file, label="Everything of this run", query_params={"run": run.run_id})

    return way


def choose_module(modules: list[str]) -> None:
    """A list of the run's programs, where it has more than one; what is chosen goes into the address."""
    now = st.query_params.get("module", "")
    names = [m for m in modules if m]
    if len(names) < 2 and not now:
        return
    texts = {m: m for m in dict.fromkeys([now, *names] if now else names)}
    control(MODULE, texts=texts, unset="All programs", hidden=True, width=320)


def search() -> str:
    """A search box; its text is in the address."""
    place = "Search operations, source lines, programs"
    return control(SEARCH, empty=place, hidden=True, width=360, icon=":material/search:", key="search_ops")


def found(rows: pd.DataFrame, text: str) -> pd.DataFrame:
    """The rows in which every word of `text` occurs, in any column of text; upper and lower case are alike."""
    whole = pd.Series("", index=rows.index)
    for column in ("op", "module", "category", "source", "shape", "bound", "scope", "framework_op", "kernel"):
        if column in rows:
            whole = whole + " " + rows[column].fillna("").astype(str).str.lower()
    keep = pd.Series(True, index=rows.index)
    for word in text.lower().split():
        keep &= whole.str.contains(word, regex=False)
    return rows[keep]


def op_table(rows: pd.DataFrame, key: str, on_pick: Callable[[dict[str, Any]], None]) -> None:
    """The rows to sort; a click on one calls `on_pick` with it."""
    shown = rows.head(MAX_ROWS)

    def picked() -> None:
        if at := st.session_state[key].selection.rows:
            on_pick(shown.iloc[at[0]].to_dict())

    order = [c for c in _FIRST if c in shown] + [str(c) for c in shown if c not in _FIRST]
    draw_table(
        shown,
        column_order=order,
        key=key,
        on_select=picked,
        selection_mode="single-row",
    )
    if len(rows) > MAX_ROWS:
        st.caption(f"The first {MAX_ROWS:,} of {len(rows):,} are shown; the files below hold all.")
