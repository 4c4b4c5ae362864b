"""The pictures of the KV cache page, and the arithmetic behind them."""

import pandas as pd
import streamlit as st

from analyzers.serving.kv_cache import KvResult
from app.components.chart import chart
from app.components.question_page import Told
from app.questions.kv_cache.figure import by_length, memory, over_time
from app.questions.kv_cache.words import change_name, rows
from errors import format as fmt


def pictures(told: Told[KvResult]) -> None:
    """One chip's memory, sequences against length, the cache over time, and the rows to take away."""
    result, name, drawn = told.result, told.name, None
    if result.room is not None and result.model is not None:
        st.markdown(
            "**What one chip holds.** As asked, and with the change that makes most room; hatched: the same on "
            "several chips, or of no use."
        )
        bars = {f"as asked: {result.max_sequences:,} fit": result.room}
        if result.changes and result.changes[0][2].max_sequences > (result.max_sequences or 0):
            what, _, found = result.changes[0]
            bars[f"{change_name(what, found).lower()}: {found.max_sequences:,}"] = found
        drawn = memory(bars)
        chart(drawn, f"memory {name} {told.options}", f"{name}-memory", told.verdict)
        st.markdown("**How many fit, by length.** A step down: whole sequences only. Ringed: as asked.")
        chart(by_length(result.model, result.room), f"length {name} {told.options}", f"{name}-length", told.verdict)
    if line := over_time(result):
        st.markdown("**How full it was.**")
        chart(line, f"time {name}", f"{name}-time", "Share of the cache in use over time.")
        drawn = drawn or line
    if result.page_rounding is not None and result.room is not None:
        st.markdown(
            f"Of the pages of this run's {fmt.count(result.requests, 'request')} at their end, "
            f"{fmt.share(result.page_rounding)} only fill up the last page."
        )
    table = pd.DataFrame(rows(result), columns=["figure", "value"])
    told.evidence(table, "the arithmetic, line by line", drawn, "KV cache")
