"""Serving cases: published figures worked through, measured beside modelled."""

import pandas as pd
import streamlit as st

from app.components.actions import copy_link
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.current import switch
from app.components.downloads import downloads
from app.components.notice import notice
from app.components.text import md
from app.components.verdict import beyond, verdict
from app.figures.base import standalone
from app.pages.serving_cases.figure import beside, break_even
from app.whatif.cases import CASES, worked
from app.whatif.cases.base import Case
from errors import ChipledgerError


def page() -> None:
    left, right = st.columns([4, 1], vertical_alignment="center")
    left.subheader("Serving cases", anchor=False)
    with right.container(horizontal=True, horizontal_alignment="right"):
        copy_link()
    st.caption(
        "Figures that were published, worked through: what was measured, what our model gives with no tuning, "
        "and what can be concluded from either."
    )
    name = switch("Case", "case", {c.NAME: c.TITLE for c in CASES}, CASES[0].NAME)
    chosen = next(c for c in CASES if name == c.NAME)
    st.markdown(f"**{md(chosen.QUESTION)}**")
    try:
        with st.spinner("Working it through"):
            case = worked(name)
    except ChipledgerError as e:
        notice(e, library=False)
        return
    verdict(case.verdict)
    pictures(case)
    beyond(case.verdict)
    table = pd.DataFrame([r.to_dict() for r in case.rows])
    with st.expander("Evidence: every figure with its source", icon=":material/table:", expanded=True):
        draw_table(table)
        downloads(
            table,
            f"case-{name}",
            f"/api/whatif/case?name={name}",
            lambda: standalone(beside(case.rows), case.title, f"case-{name}"),
        )
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown("\n".join(f"- {md(note)}" for note in case.notes))


def pictures(case: Case) -> None:
    """Ours by the published, and the break-even line where the case compares two machines."""
    st.markdown(
        "**How far is our figure from the published one?** Filled: follows from published figures alone; "
        "hollow: modelled, with its range."
    )
    chart(beside(case.rows), f"beside {case.name}", f"case-{case.name}", case.verdict)
    if case.slopes:
        one, other = case.machines
        st.markdown(
            f"**At which prices do both cost the same?** Above a line {md(one)} gives the cheaper tokens, "
            f"below it {md(other)}."
        )
        chart(break_even(case.slopes, one, other), f"break-even {case.name}", f"case-{case.name}-price", case.verdict)


if __name__ == "__main__":
    page()
