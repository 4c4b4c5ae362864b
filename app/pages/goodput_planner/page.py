"""Goodput planner: what share of its time a job keeps when chips fail, where the rest goes, and what would help."""

from functools import lru_cache
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
from app.components.verdict import beyond, verdict
from app.figures.base import standalone
from app.pages.goodput_planner import figure
from app.pages.goodput_planner.claimed import claimed
from app.pages.goodput_planner.form import EXAMPLE, asked, controls
from app.whatif.goodput import curves
from app.whatif.goodput.answers import GoodputPlan, find
from app.whatif.goodput.wording import TITLES, remote
from app.whatif.goodput.wording import verdict as plan_verdict
from errors import QuestionError
from errors import format as fmt
from simulators.training.life_terms import TERMS

NAME = "goodput-plan"
planned = lru_cache(maxsize=64)(find)  # a slider that comes back finds its lives again


def planner() -> None:
    left, right = st.columns([4, 1], vertical_alignment="center")
    left.subheader("Goodput planner", anchor=False)
    with right.container(horizontal=True, horizontal_alignment="right"):
        copy_link()
    st.caption("Chips that fail, saves and restarts in; the share of time that a job keeps out. All of it is modelled.")
    if not st.query_params.get("chips"):
        st.query_params.update(EXAMPLE)  # so that the address says what is shown
    try:
        made = planned(asked())
    except QuestionError as e:
        notice(e, library=False)
        controls()
        return
    verdict(plan_verdict(made))
    controls()
    show(made)
    beyond(plan_verdict(made))
    claimed(made)
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown("\n".join(f"- {md(note)}" for note in made.notes))
        terms_list(TERMS)


def show(made: GoodputPlan) -> None:
    """Figures, where the time goes, and goodput along intervals and chips."""
    figures_row(figures(made))
    st.markdown("**Where does the time go?** The mean of all lives, in the colours of a run's ledger.")
    bars = figure.where_it_goes(made)
    chart(bars, "where", NAME, plan_verdict(made))
    closed, lives = curves.over_interval(made)
    chips = curves.over_chips(made)
    left, right = st.columns(2)
    with left:
        st.markdown("**How often to save?** Bars: nine of ten lives.")
        chart(figure.over_interval(made, closed, lives), "interval", f"{NAME}-interval", "Goodput over the interval")
    with right:
        st.markdown("**On how many chips?** More of them fail more often; the band holds nine of ten lives.")
        chart(figure.over_chips(made, chips), "chips", f"{NAME}-chips", "Goodput over the number of chips")
    rows = pd.DataFrame(figure.rows((("interval_s", lives), ("chips", chips))))
    with st.expander(f"Evidence: {fmt.count(len(rows), 'point')}", icon=":material/table:"):
        draw_table(rows)
        downloads(rows, NAME, api_address(made), lambda: standalone(bars, "Where the time goes", NAME))


def api_address(made: GoodputPlan) -> str:
    """Where the server answers the same question: what was given stands in it, zeros too."""
    entered = {n: v for n, v in vars(made.asked).items() if v is not None and v is not False}
    return f"/api/whatif/goodput?{urlencode(entered)}"


def figures(made: GoodputPlan) -> list[Figure]:
    """Goodput with its range, failures, the largest loss, the interval, and what elastic training gains."""
    low, high = map(fmt.share, made.range)
    where, share = next(iter(made.badput.items()))
    days = made.goodput * made.life.span_s
    told = [
        Figure("Goodput", fmt.share(made.goodput), f"{low} to {high} in nine of ten lives.", "modelled"),
        Figure("Kept", fmt.duration(days), f"Of {fmt.duration(made.life.span_s)}.", "modelled"),
        Figure("A failure every", fmt.duration(made.life.job.mttf_s), "Of any of its chips.", "modelled"),
        Figure("Largest loss", fmt.share(share), f"{TITLES[where].capitalize()}.", "modelled"),
    ]
    if made.gain is None:
        every = made.best.saves_per_remote
        other = f", {remote(every)}" if every != made.life.saves_per_remote else ""
        best = f"The best: {fmt.duration(made.best_interval_s)}{other}."
        return [*told, Figure("A save after every", fmt.duration(made.life.interval_s), best, "modelled")]
    sign = "+" if made.gain >= 0 else "−"
    gain = f"{sign}{fmt.number(100 * abs(made.gain))} points"
    return [*told, Figure("Elastic gains", gain, "Against restarting the whole at each failure.", "modelled")]


if __name__ == "__main__":
    planner()
