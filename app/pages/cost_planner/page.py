"""Cost planner: how many days and dollars a training job takes, and on how many of which chips."""

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
from app.pages.cost_planner.figure import days
from app.pages.cost_planner.form import EXAMPLE, asked, cost_form
from app.pages.cost_planner.trade import dollars, equal_time
from app.whatif.cost.answers import Choice, CostPlan, find
from app.whatif.cost.wording import verdict as plan_verdict
from errors import QuestionError
from errors import format as fmt
from simulators.training.terms import TERMS

NAME = "cost-plan"


def planner() -> None:
    left, right = st.columns([4, 1], vertical_alignment="center")
    left.subheader("Cost planner", anchor=False)
    with right.container(horizontal=True, horizontal_alignment="right"):
        copy_link()
    st.caption("Model, tokens and chips in; days and dollars out, as ranges. Everything here is modelled.")
    if "model" not in st.query_params:
        st.query_params.update(EXAMPLE)  # so that the address says what is shown
    try:
        now = asked()
        made = find(now)
    except QuestionError as e:
        notice(e, library=False)
        cost_form(st.query_params)
        return
    verdict(plan_verdict(made))
    show(made)
    cost_form(vars(now))
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown("\n".join(f"- {md(note)}" for note in made.notes))
        terms_list(TERMS)


def show(made: CostPlan) -> None:
    """Figures of the best choice, days over chips, what is to be known of choices, and all of them."""
    first = made.best or made.choices[0]
    figures_row(figures(made, first))
    st.markdown(
        "**How many chips for how many days?** Each line is a chip at its likely MFU, its band goes from the low to "
        "the high end. Dotted: beyond the largest published run, where MFU falls by an unknown amount."
    )
    figure = days(made.choices, made.asked.days)
    chart(figure, "days", NAME, plan_verdict(made))
    remarks = dict.fromkeys(f"{c.chip.name}: {c.remark}." for c in made.choices if c.remark)
    for said in (*made.why_not, *remarks):
        st.caption(md(said))
    trade(made, first)
    rows = pd.json_normalize([c.to_dict() for c in made.choices], sep="_")
    with st.expander(f"Evidence: {fmt.count(len(rows), 'choice')}", icon=":material/table:"):
        draw_table(rows)
        entered = {n: v for n, v in vars(made.asked).items() if v is not None}
        address = f"/api/whatif/cost?{urlencode(entered)}"
        downloads(rows, NAME, address, lambda: standalone(figure, "Days over chips", NAME))


def trade(made: CostPlan, best: Choice) -> None:
    """Dollars against days, and lines of equal time of the best choice's chip."""
    if made.front:
        st.markdown(
            "**What do days cost?** Bars run over the range of the MFU. Filled: no other choice beats it in both. "
            "At one MFU more chips cost the same."
        )
        chart(dollars(made), "dollars", f"{NAME}-dollars", "Dollars against days")
    st.markdown(
        f"**What takes equally long?** Each line is a number of days, on {md(best.chip.name)}: left by the MFU that it "
        "takes at the goodput that is asked, right by the goodput at the likely MFU."
    )
    lines = made.equal_time
    for column, of in zip(st.columns(2), ("mfu", "goodput"), strict=True):
        with column:
            chart(equal_time(made, lines, best, of), f"equal-{of}", f"{NAME}-equal-{of}", f"Equal time by {of}")


def figures(made: CostPlan, best: Choice) -> list[Figure]:
    """Of one choice: chips, time, dollars, MFU and rate."""
    low, likely, high = best.mfu
    ends = "" if low == high else f" Between {fmt.share(low)} and {fmt.share(high)}."
    source = "Of published runs." if best.basis == "published" else "As it was given."
    paid = "Chips alone." if best.likely.usd is not None else "Enter prices below to see dollars."
    team = []
    if best.per_developer is not None:
        each = f"Model FLOPs a month that are kept, over {fmt.count(best.developers, 'active developer')}."
        team = [Figure("FLOPs per developer", fmt.flops(best.per_developer[1]), each, "modelled")]
    return [
        Figure("Chips", f"{best.chips:,}", f"{best.chip.name}, in whole hosts.", "modelled"),
        Figure(
            "Training time", fmt.duration(best.likely.days * 86_400), "From the first step to the last.", "modelled"
        ),
        Figure("Dollars", fmt.usd(best.likely.usd), paid, "modelled"),
        Figure("MFU", fmt.share(likely), f"{source}{ends}", best.basis if best.basis == "published" else "declared"),
        Figure(
            "Tokens/s per chip",
            fmt.number(best.likely.tokens_per_s_per_chip),
            f"{fmt.flops(made.work.flops_per_token)} a token at {made.seq:,} tokens a sequence.",
            "modelled",
        ),
        *team,
    ]


if __name__ == "__main__":
    planner()
