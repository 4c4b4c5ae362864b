"""Training planner: which chips, how many of them and which layout train a model, how long and at what cost."""

from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from app.components.actions import copy_link
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.downloads import downloads
from app.components.figures_row import Figure, figures_row
from app.components.howto import terms_list
from app.components.notice import notice
from app.components.text import md
from app.components.verdict import verdict
from app.figures.base import standalone
from app.pages.training_planner.beside import beside
from app.pages.training_planner.figure import over_chips, where_it_goes
from app.pages.training_planner.form import EXAMPLE, asked, training_form
from app.whatif.training import TRAINING
from app.whatif.training import verdict as plan_verdict
from app.whatif.training.answers import Choice, TrainingPlan
from app.whatif.training.wording import axes
from app.workspace import workspace
from errors import QuestionError
from errors import format as fmt
from simulators.training.terms import PLAN_TERMS

NAME = "training-plan"


def planner() -> None:
    left, right = st.columns([4, 1], vertical_alignment="center")
    left.subheader("Training planner", anchor=False)
    with right.container(horizontal=True, horizontal_alignment="right"):
        copy_link()
    st.caption(
        "Model, tokens and chips in; layouts, days and dollars out, as ranges. All of it is modelled, but for the run "
        "that it may start from."
    )
    if not {"model", "calibrate"} & {*st.query_params}:
        st.query_params.update(EXAMPLE)  # so that the address says what is shown
    try:
        now = asked()
        made = TRAINING.answer(now, workspace() if now.calibrate else None)
    except QuestionError as e:
        notice(e, library=False)
        training_form(st.query_params)
        return
    verdict(plan_verdict(made))
    show(made)
    training_form(vars(made.asked))
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown("\n".join(f"- {md(note)}" for note in made.notes))
        terms_list(PLAN_TERMS)


def show(made: TrainingPlan) -> None:
    """Figures of the best choice, time over chips, where the chip time goes, and every layout."""
    figures_row(figures(made.best or made.choices[0]))
    beside(made, NAME)
    timed = made.asked.tokens is not None
    st.markdown(
        f"**How many chips for how {'many days' if timed else 'fast a step'}?** Each mark is the fastest layout on so "
        "many chips, its bar the range in which nine of ten published runs lay."
    )
    figure = over_chips(made.firsts, made.asked.days)
    chart(figure, "over-chips", NAME, plan_verdict(made))
    st.markdown(
        "**Where does the chip time of a step go?** Each chip's best layout, then those on other numbers of chips."
    )
    chart(where_it_goes(made.firsts), "where", NAME, "Accounts of a step")
    for said in made.why_not:
        st.caption(md(said))
    rows = pd.json_normalize([c.to_dict() for c in made.choices], sep="_").drop(columns=["fits", "basis"])
    told = f"Evidence: {fmt.count(len(rows), 'layout')} of {made.tried:,} tried"
    with st.expander(told, icon=":material/table:"):
        draw_table(rows)
        entered = {n: v for n, v in vars(made.asked).items() if v is not None}
        address = f"/api/whatif/training?{urlencode(entered)}"
        downloads(rows, NAME, address, lambda: standalone(figure, "Time over chips", NAME))


def figures(best: Choice) -> list[Figure]:
    """Of one choice: chips, step, MFU, memory, time or dollars."""
    p = best.planned
    rest = f"{fmt.duration(p.low_s)} to {fmt.duration(p.high_s)}."
    last = (
        Figure("Training time", fmt.duration(best.days[1] * 86_400), "From the first step to the last.", "modelled")
        if best.days
        else Figure("Tokens/s per chip", fmt.number(p.tokens_per_s_per_chip), "While steps run.", "modelled")
    )
    dollars = [] if best.usd is None else [Figure("Dollars", fmt.usd(best.usd[1]), "Chips alone.", "modelled")]
    again = f" {fmt.share(p.recomputed)} of the layers' activations are computed again." if p.recomputed else ""
    return [
        Figure("Chips", f"{p.chips:,}", f"{p.chip}: {axes(best)}.", "modelled"),
        Figure("Step time", fmt.duration(p.step_s), f"Between {rest}", "modelled"),
        Figure("MFU", fmt.share(p.mfu), f"{p.flops_per_s_per_chip / 1e12:,.0f} TFLOP/s of a chip.", "modelled"),
        Figure("Memory of a chip", fmt.size(p.bytes_per_chip), f"Of its device memory.{again}", "modelled"),
        last,
        *dollars,
    ]


if __name__ == "__main__":
    planner()
