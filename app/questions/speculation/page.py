"""Speculation: how many draft tokens are accepted, what that is worth, and up to how many sequences it pays."""

import math

import pandas as pd
import streamlit as st

from analyzers.serving.speculation import SpeculationResult
from app import format as fmt
from app.components.chart import chart
from app.components.downloads import downloads
from app.components.figures_row import Figure, figures_row
from app.components.model_picker import About, answered, explained, model_or_run
from app.components.text import md
from app.components.verdict import verdict
from app.figures.base import standalone
from app.questions.asking import ask
from app.questions.speculation import SPECULATION
from app.questions.speculation.controls import controls, model_known
from app.questions.speculation.figure import by_batch, by_draft, by_position, over_time
from app.questions.speculation.words import decay, times, whole
from app.questions.speculation.words import verdict as speculation_verdict


def page() -> None:
    view(model_or_run())


@st.fragment
def view(about: About) -> None:
    """Everything below the head: a choice draws it again and leaves the head alone."""
    top = st.container()

    def compute() -> tuple[SpeculationResult, dict[str, object]]:
        given = controls(about)
        return ask(SPECULATION, about.subject, given, about.place.registry), given

    found = answered(about, compute, SPECULATION.terms, SPECULATION.inputs)
    if found is None:
        return
    result, given = found
    with top:
        verdict(speculation_verdict(result))
        figures_row(figures(result))
    pictures(about, result, given)
    explained(about, SPECULATION.terms, result.notes, SPECULATION.inputs)


def figures(result: SpeculationResult) -> list[Figure]:
    """Accepted, tokens of a step, worth, best length, break-even."""
    basis = "modelled" if result.observed.source == "asked" else "measured"
    shown = [
        Figure("Accepted", fmt.share(result.observed.rate), SPECULATION.meaning("Accepted"), basis),
        Figure("Tokens of a step", fmt.number(result.length), SPECULATION.meaning("Tokens of a step"), basis),
        Figure("Speed-up", times(result.speedup), SPECULATION.meaning("Speed-up"), "modelled"),
    ]
    if result.measured_speedup is not None:
        shown.append(
            Figure(
                "Measured speed-up",
                times(result.measured_speedup),
                SPECULATION.meaning("Measured speed-up"),
                "measured",
            )
        )
    else:
        shown.append(
            Figure(
                "Best draft",
                f"{result.best.tokens} tokens",
                "The length with the greatest speed-up: by "
                "the measured positions, else by Leviathan's rule; at most "
                f"{len(result.drafts) - 1}.",
                "modelled",
            )
        )
    if result.break_even_batch is not None:
        limit = "any" if math.isinf(result.break_even_batch) else fmt.number(result.break_even_batch)
        shown.append(Figure("Break-even batch", limit, SPECULATION.meaning("Break-even batch"), "modelled"))
    return shown


def pictures(about: About, result: SpeculationResult, given: dict) -> None:
    """Acceptance by position, worth by length and by batch, over time, and the rows to take away."""
    name, words = f"{about.name}-speculation", speculation_verdict(result)
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
    if drawn := by_batch(result):
        st.markdown(
            f"**Up to how many sequences it pays.** {md(result.machine.model.name)} with {result.context:,} "
            "tokens of context: beyond the first line verifying costs, below 1 it loses."
        )
        chart(drawn, f"batch {name} {given}", f"{name}-batch", words)
    else:
        what = "Name the chip above" if model_known(about) else "Choose the model at the head of the page, and a chip"
        st.info(f"{what} to see up to how many sequences drafting pays.", icon=":material/info:")
    if line := over_time(result):
        st.markdown("**Over time.** Share of draft tokens accepted in each stretch.")
        chart(line, f"time {name} {given}", f"{name}-time", words)
    with st.expander("Evidence: positions, draft lengths and passes", icon=":material/table:"):
        st.dataframe(result.positions, hide_index=True)
        st.dataframe(pd.DataFrame([vars(d) for d in result.drafts]), hide_index=True)
        if len(result.passes):
            st.dataframe(result.passes, hide_index=True)
        downloads(
            result.positions,
            name,
            about.answer(SPECULATION, given),
            lambda: standalone(first, f"{about.name}: speculation", name),
        )


if __name__ == "__main__":
    page()
