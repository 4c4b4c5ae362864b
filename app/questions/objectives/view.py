"""The pictures of the objectives page, and the requests that missed."""

import streamlit as st

from analyzers.serving.objectives import SloResult
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.current import switch
from app.components.question_page import Told
from app.questions.objectives import figure as draw
from app.questions.objectives.words import SERVER
from errors import format as fmt

VIEWS = {"surface": "TTFT and TPOT at once", "curves": "One threshold at a time"}


def explore(told: Told[SloResult]) -> None:
    """Misses by cause, attainment against thresholds, and the requests that missed."""
    result, name, words = told.result, told.name, told.verdict
    if result.load.tool == SERVER:
        st.markdown("**Every request that the server timed**: in time at least, and what is not told to be.")
    elif result.load.kept is not None:
        st.markdown("**Every request that is kept**: in time, or missed for exactly one cause.")
    else:
        st.markdown("**Every request that was sent**: in time, or missed for exactly one cause.")
    chart(draw.misses(result), "misses", f"{name}-misses", words)
    if not len(result.curves):
        return
    possible = VIEWS if result.surface is not None else {"curves": VIEWS["curves"]}
    view = switch("View", "view", possible, next(iter(possible)))
    if view == "surface":
        st.markdown(
            "**Which objectives could be promised**: share of requests kept for any TTFT and TPOT, other "
            "objectives held; the line is 90 %, the ring what is chosen."
        )
    else:
        st.markdown("**What a tighter or looser threshold would change**: each moved alone, the others held.")
    figure = (draw.surface(result) if view == "surface" else None) or draw.curves(result)
    chart(figure, f"slo {view}", f"{name}-{view}", words)
    if len(result.tenants):
        st.markdown("**By tenant**")
        shown = result.tenants.assign(attainment=result.tenants["attainment"] * 100)
        percent = st.column_config.NumberColumn("attainment (%)", format="%.1f")
        draw_table(shown, columns={"attainment": percent})
    rows = result.missed.dropna(axis="columns", how="all")
    told.evidence(rows, f"{fmt.count(len(rows), 'request')} that missed", figure, "objectives")
