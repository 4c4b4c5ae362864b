"""Training planner: which chips, how many of them and which layout train a model, how long and at what cost."""

from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from app.components.actions import copy_link
from app.components.by_itself import fragment
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.downloads import downloads
from app.components.figures_row import Figure, figures_row
from app.components.howto import terms_list
from app.components.notice import notice
from app.components.text import md
from app.components.verdict import beyond, verdict
from app.pages.training_planner.beside import beside as run_beside
from app.pages.training_planner.figure import where_it_goes
from app.pages.training_planner.form import EXAMPLE, asked, training_form
from app.pages.training_planner.making import make_it_real
from app.pages.training_planner.steering import as_page, steer
from app.pages.training_planner.worked import beside, worked_links
from app.whatif.training import TRAINING
from app.whatif.training import verdict as plan_verdict
from app.whatif.training.amounts import dollars, time
from app.whatif.training.answers import Choice, TrainingPlan
from app.whatif.training.phrases import axes
from app.whatif.training.sensitivity import sensitivity
from app.whatif.training.wording import runners_up
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
    worked_links()
    try:
        now = asked()
        made = TRAINING.answer(now, workspace() if now.calibrate else None)
    except QuestionError as e:
        notice(e, library=False)
        training_form(st.query_params)
        return
    verdict(plan_verdict(made))
    beside(made)
    show(made)
    beyond(plan_verdict(made))
    training_form(vars(made.asked if now.calibrate else now))
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown("\n".join(f"- {md(note)}" for note in made.notes))
        terms_list(PLAN_TERMS)


def show(made: TrainingPlan) -> None:
    """Figures of the best choice, the run it starts from, days and dollars, where the chip time goes, why others lose,
    what makes it real."""
    figures_row(figures(made.first))
    run_beside(made, NAME)
    fragment(steer)(made, NAME)
    st.markdown(
        "**Where does the chip time of a step go?** Each chip's best layout, then those on other numbers of chips."
    )
    chart(where_it_goes(made.firsts), "where", NAME, "Accounts of a step")
    losing(made)
    fragment(make_it_real)(made)
    rows = pd.json_normalize([c.to_dict() for c in made.choices], sep="_").drop(columns=["fits", "basis"])
    told = f"Evidence: {fmt.count(len(rows), 'layout')} of {made.tried:,} tried"
    with st.expander(told, icon=":material/table:"):
        draw_table(rows)
        entered = {n: v for n, v in vars(made.asked).items() if v is not None}
        downloads(rows, NAME, f"/api/whatif/training?{urlencode(entered)}", lambda: as_page(made, NAME))


def losing(made: TrainingPlan) -> None:
    """Why others lose, and what the best would take were one of its shares another."""
    said = [*(r.text for r in runners_up(made)), *made.why_not]
    if said:
        st.markdown("**Why do others lose?**\n\n" + "\n".join(f"- {md(text)}" for text in said))
    if moved := sensitivity(made.first):
        with st.expander("What if its MFU, goodput or price were another?", icon=":material/tune:"):
            draw_table(pd.DataFrame([m.to_dict() for m in moved]))


def figures(best: Choice) -> list[Figure]:
    """Of one choice: chips, time or step, dollars or rate, MFU, memory."""
    p = best.planned
    again = f" {fmt.share(p.recomputed)} of the layers' activations are computed again." if p.recomputed else ""
    room = f"{fmt.size(p.bytes_left)} of {fmt.size(p.hbm_bytes)} are left{', it fits only just' if p.tight else ''}."
    return [
        Figure("Chips", f"{p.chips:,}", f"{p.chip}: {axes(best)}.", "modelled"),
        *_taken(best),
        Figure("MFU", fmt.share(p.mfu), f"{p.flops_per_s_per_chip / 1e12:,.0f} TFLOP/s of a chip.", "modelled"),
        Figure("Memory of a chip", fmt.size(p.bytes_per_chip), f"{room}{again}", "modelled"),
    ]


def _taken(best: Choice) -> list[Figure]:
    """Days, or what a step takes where no tokens are named; dollars, where there is a price."""
    p = best.planned
    rate = Figure("Tokens/s per chip", fmt.number(p.tokens_per_s_per_chip), "While steps run.", "modelled")
    step = f"{fmt.duration(p.low_s)} to {fmt.duration(p.high_s)}"
    if best.days is None:
        return [Figure("Step time", fmt.duration(p.step_s), f"Between {step}.", "modelled"), rate]
    low, likely, high = map(time, best.days)
    how = f"From the first step to the last: {low} to {high}. A step takes {fmt.duration(p.step_s)}, {step}."
    took = Figure("Training time", likely, how, "modelled")
    if best.usd is None:
        return [took, rate]
    low, likely, high = map(dollars, best.usd)
    return [took, Figure("Dollars", likely, f"Chips alone: {low} to {high}.", "modelled")]


if __name__ == "__main__":
    planner()
