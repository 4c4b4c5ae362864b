"""The pictures of the speculation page, and the rows behind them."""

import pandas as pd
import streamlit as st

from analyzers.serving.speculation import SpeculationResult
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.question_page import Told
from app.components.text import md
from app.questions.speculation.controls import model_known
from app.questions.speculation.figure import BATCHES, by_batch, by_draft, by_position, over_time
from app.questions.speculation.words import decay, whole
from errors import format as fmt


def pictures(told: Told[SpeculationResult]) -> None:
    """Acceptance by position, worth by length and by batch, over time, and the rows to take away."""
    result, name, words, given = told.result, told.name, told.verdict, told.options
    left, right = st.columns(2)
    with left:
        st.markdown(
            "**Acceptance by position.** "
            + md(decay(result) or "Not measured by position; what alike tokens would give.")
        )
        first = by_position(result)
        chart(first, f"position {name} {given}", f"{name}-position", words)
    with right:
        st.markdown(
            f"**What a draft length is worth**, with a draft step at {fmt.share(result.cost, 2)} of a step "
            f"({md(result.cost_source)}). Ringed: {whole(result.draft)}."
        )
        chart(by_draft(result), f"draft {name} {given}", f"{name}-draft", words)
    if result.machine is not None and (drawn := by_batch(result)):
        st.markdown(
            f"**Up to how many sequences it pays.** {md(result.machine.model.name)} with {result.context:,} "
            f"tokens of context: {_verifying(result.free_batch)}, below 1 it loses."
        )
        chart(drawn, f"batch {name} {given}", f"{name}-batch", words)
    else:
        known = model_known(told.about)
        what = "Name the chip above" if known else "Choose the model at the head of the page, and a chip"
        st.info(f"{what} to see up to how many sequences drafting pays.", icon=":material/info:")
    if line := over_time(result):
        st.markdown("**Over time.** Share of draft tokens accepted in each stretch.")
        chart(line, f"time {name} {given}", f"{name}-time", words)
    with st.expander("Evidence: positions, draft lengths and passes", icon=":material/table:"):
        draw_table(result.positions)
        draw_table(pd.DataFrame([vars(d) for d in result.drafts]))
        if len(result.passes):
            draw_table(result.passes)
        told.downloads(result.positions, first, "speculation")


def _verifying(free_batch: float | None) -> str:
    """From how many sequences verifying costs more than a plain step; None: a model with experts."""
    if not free_batch:
        return "verifying costs at any number of them"
    if free_batch > BATCHES[-1]:
        return "verifying is free at all that are drawn"
    return "beyond the first line verifying costs"
