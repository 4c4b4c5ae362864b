"""Fleet: what all runs together held, cost and lost, who held it, how that changes, and what is left of budgets."""

from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from analyzers.fleet import FleetResult
from analyzers.fleet.budget import Left
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.downloads import downloads
from app.components.figures_row import figures_row
from app.components.howto import terms_list
from app.components.notice import notice
from app.components.option import control, in_address
from app.components.page_head import page_head
from app.components.text import md
from app.components.verdict import beyond, verdict
from app.figures.base import standalone
from app.fleet import words
from app.fleet.asking import ask_fleet, zone_named
from app.fleet.budgets import sentence, standing
from app.fleet.options import BY, CAPACITY, KEYS, OPTIONS, SEARCH, SIMULATED, SINCE, TREND, UNTIL, ZONE
from app.pages.fleet import FLEET
from app.pages.fleet.figure import by_group, lost_to, named, over_time, spent_of
from app.pages.fleet.view import cause_rows, figures, group_rows, run_rows, trend_rows
from app.sharing import counted
from errors import QuestionError
from errors import format as fmt

MOST_TAGS = 8  # keys of tags that are offered
SET_BUDGET = "chipledger budget set TEAM --usd 50000"


def page() -> None:
    place = page_head("Fleet")
    try:
        given = in_address(OPTIONS)
        result = ask_fleet(place, given)
        budgets = standing(place, zone_named(given.get(ZONE.name) or ZONE.default))
    except QuestionError as e:
        notice(e, library=False)
        controls(None)
        return
    verdict(words.verdict(result))
    if said := counted():
        st.caption(said)
    if waiting := result.left_out.get("pending"):
        st.caption(f"The numbers of {fmt.count(waiting, 'run')} are being worked out. Look again in a moment.")
    controls(result)
    if result.total.runs:
        figures_row(figures(result))
        show(result)
    budget(budgets)
    evidence(result, given)
    beyond(words.verdict(result))
    st.markdown("\n".join(f"- {md(note)}" for note in words.notes(result)))
    with st.expander("How this is computed", icon=":material/function:"):
        terms_list(FLEET.terms)


def controls(result: FleetResult | None) -> None:
    """What is counted, by what, and in which periods."""
    tags = result.runs.tags.most_common(MOST_TAGS) if result else ()
    offered = [f"tag:{key}" for key, _ in tags]
    now = st.query_params.get(BY.name, "")
    keys: tuple[str, ...] = (*KEYS, *offered, *([now] if now.startswith("tag:") else []))
    row = st.columns([1, 1, 1, 2])
    with row[0]:
        control(BY, BY.default, texts={k: k.removeprefix("tag:") for k in keys})
    with row[1]:
        control(TREND, TREND.default)
    with row[2]:
        control(SINCE, SINCE.default, empty="such as 30d")
    with row[3]:
        control(SEARCH, SEARCH.default, empty="chip:v5p tag:prod")
    with st.expander("More", icon=":material/tune:"):
        more = st.columns(4, vertical_alignment="bottom")
        for column, option in zip(more, (UNTIL, ZONE, CAPACITY, SIMULATED), strict=True):
            with column:
                control(option, option.default)


def show(result: FleetResult) -> None:
    """Three pictures, each with the question it answers."""
    said = words.verdict(result)
    if result.trend:
        st.markdown(
            f"**Where did the chip time go, {result.asked.every} by {result.asked.every}?** A colour an account."
        )
        chart(over_time(result), "over_time", "fleet", said)
    st.markdown("**Who held the chips, and how much of that moved models forward?** The largest on top.")
    chart(by_group(result), "by_group", "fleet-groups", said)
    if result.causes:
        whose = "Beside each bar those who lost most." if named(result.causes) else "No run has a tag `owner` or `who`."
        st.markdown(f"**What was most lost to, and whose runs are they?** {whose}")
        chart(lost_to(result), "lost_to", "fleet-causes", said)


def budget(told: tuple[Left, ...]) -> None:
    st.markdown("**What is left of this month's budgets?**" + (BANDS if told else ""))
    if not told:
        st.markdown("No team has a budget yet. Set one on the command line:")
        st.code(SET_BUDGET, language="bash")
        return
    if any(b.spent is not None for b in told):
        chart(spent_of(told), "budgets", "budgets", "What was spent of each budget, and where the month may end.")
    st.markdown("\n".join(f"- {md(sentence(b))}" for b in told))


BANDS = " Bars were spent; the diamond and its whisker say what the month comes to if it goes on so, modelled."


def evidence(result: FleetResult, given: dict) -> None:
    """The numbers of all pictures, and the runs one by one."""
    if not result.total.runs:
        return
    address = f"/api/fleet?{urlencode({k: v for k, v in given.items() if v not in (None, '')})}"
    with st.expander("Evidence: sums, periods, causes and runs", icon=":material/table:"):
        groups = pd.DataFrame(group_rows(result))
        draw_table(groups)
        if result.trend:
            draw_table(pd.DataFrame(trend_rows(result)))
        if result.causes:
            draw_table(pd.DataFrame(cause_rows(result)))
        draw_table(pd.DataFrame(run_rows(result)))
        downloads(groups, "fleet", address, lambda: standalone(by_group(result), "Fleet", "fleet"))


if __name__ == "__main__":
    page()
