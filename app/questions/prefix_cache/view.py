"""The pictures of the prefix cache page, and the rows behind them."""

import streamlit as st

from analyzers.serving.prefix_cache import PrefixResult
from app.components.chart import chart
from app.components.question_page import Told
from app.questions.prefix_cache.figure import by_size, over_time, reuse, tenants
from errors import format as fmt


def pictures(told: Told[PrefixResult]) -> None:
    """What each size finds, when blocks come again, by tenant, the engine's own over time, and the rows."""
    result, name, words, drawn = told.result, told.name, told.verdict, None
    if result.replayed and result.infinite_hit_rate:
        st.markdown("**What a cache of each size would find.** The same requests, replayed at every size at once.")
        drawn = by_size(result)
        chart(drawn, f"size {name} {told.options}", f"{name}-size", words)
    if bars := reuse(result):
        st.markdown("**When blocks come again.** A cache has to keep a block that long to find it.")
        chart(bars, f"reuse {name} {told.options}", f"{name}-reuse", words)
    if bars := tenants(result):
        st.markdown(
            "**By tenant.** "
            + (
                "Found at this size; hatched, if any: what a larger cache would find."
                if result.size_blocks
                else "Found by a cache without end."
            )
        )
        chart(bars, f"tenants {name} {told.options}", f"{name}-tenants", words)
    if line := over_time(result):
        st.markdown("**What the engine found, over time.**")
        drawn = drawn or line
        chart(line, f"time {name} {told.options}", f"{name}-time", words)
    if len(result.first_tokens):
        st.markdown(
            "**Time to first token, waiting included, by what was found of the prompt.** "
            + "; ".join(
                f"{row['found']}: median {fmt.duration(row['ttft_s'])} ({row['requests']:,} requests, prompts of "
                f"{row['prompt_tokens']:,.0f} tokens)"
                for row in result.first_tokens.to_dict("records")
            )
            + "."
        )
    rows = result.by_size if result.replayed else result.measured.over_time
    told.evidence(rows, fmt.count(len(rows), "row"), drawn, "prefix cache")
