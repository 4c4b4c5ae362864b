"""How far a run is from what could be: its ladder as bars, and the accounts of the ledger that lie between."""

import plotly.graph_objects as go
import streamlit as st

from analyzers.findings import FindingsResult
from analyzers.findings.grade import Grade
from app import theme
from app.components.chart import chart
from app.components.text import md
from app.figures.base import layout, plain
from app.grading import graded
from app.pages.all import pages_of
from app.questions import QUESTIONS, question
from app.questions.findings.figure import by_account
from app.workspace import Workspace
from errors import format as fmt
from runs.ledger import Ledger
from runs.run import Run

ROW_PX = 30
OTHERS = ("peak", "published", "store", "compiled", "roof")
"""Rungs that are not the run's own."""
SHOWN_GAP = 5  # accounts, the largest


def ladder(run: Run, result: FindingsResult, place: Workspace, name: str) -> None:
    """The rungs, those of other runs among them, and what is missing."""
    with st.spinner("Holding it against other runs"):
        grade = graded(run, result, place)
    if not grade.rungs:
        for why in grade.missing:
            st.caption(md(sentence(why)))
        return
    st.markdown(f"**How far from what could be?** {md(said(grade))}")
    chart(figure(grade), "ladder", f"{name}-ladder", said(grade))
    links = [r for r in grade.rungs if r.run_id]
    with st.container(horizontal=True):
        for rung in links:
            st.page_link(question(rung.question).file, label=rung.title, query_params={"run": rung.run_id or ""})
    if grade.missing:
        st.caption(md(" ".join(sentence(why) for why in grade.missing)))


def said(grade: Grade) -> str:
    """The ladder in one sentence: the run's usual steps, what is next above them, and all that was paid for."""
    usual, held = grade.rung("usual_steps"), grade.rung("held") or grade.rung("wall")
    parts = []
    if usual is not None:
        above = [r for r in grade.rungs if r.name in OTHERS and r.utilisation > usual.utilisation]
        nearest = above[-1] if above else None
        parts.append(f"Usual steps reach {fmt.share(usual.utilisation)} of the peak")
        if nearest is not None and nearest.name != "peak":
            title = nearest.title[:1].lower() + nearest.title[1:]
            parts.append(f"next above them is {title}, {fmt.share(nearest.utilisation)}")
        best = [r for r in grade.rungs if r.name in ("published", "store") and r.utilisation <= usual.utilisation]
        if best:
            parts.append(f"{best[0].title.split(':')[0].lower()} there is none better")
    if held is not None:
        time = "of all chip time held" if held.name == "held" else "from the first step to the last"
        parts.append(f"{time} it is {fmt.share(held.utilisation)}")
    return "; ".join(parts) + "."


def sentence(text: str) -> str:
    text = text.rstrip(".")
    return f"{text[:1].upper()}{text[1:]}."


def figure(grade: Grade) -> go.Figure:
    """A bar a rung: the run's own in the colour of useful maths, others in grey."""
    rungs = grade.rungs
    drawn = go.Figure()
    own, other = theme.colour(["useful_maths"]), theme.GREY
    drawn.add_bar(
        orientation="h",
        y=[plain(r.title) for r in rungs],
        x=[100 * r.utilisation for r in rungs],
        marker={"color": [other if r.name in OTHERS else own for r in rungs]},
        text=[fmt.share(r.utilisation) for r in rungs],
        textposition="outside",
        cliponaxis=False,
        customdata=[[plain(r.over), theme.mark(r.basis).word] for r in rungs],
        hovertemplate="<b>%{y}</b>: %{text}<br>%{customdata[0]}<br>%{customdata[1]}<extra></extra>",
    )
    return layout(
        drawn,
        height=ROW_PX * len(rungs) + 60,
        bargap=0.35,
        xaxis={"title": "useful maths, % of the chips' peak", "range": [0, 112], "fixedrange": True},
        yaxis={"autorange": "reversed", "fixedrange": True, "automargin": True},
    )


def gap(ledger: Ledger, run: Run, floor: float, without: str = "") -> None:
    """The largest accounts that are no useful maths, faults or not, each with the page that explains it; `without`: the
    page that this stands on."""
    there = pages_of(run)
    pages = [page for page in QUESTIONS if page in there and page.name != without]
    whole = ledger.chip_seconds
    amounts = sorted(by_account(ledger).items(), key=lambda entry: -entry[1])
    shown = [(n, s) for n, s in amounts if n != "useful_maths" and s >= floor * whole][:SHOWN_GAP]
    for name, seconds in shown:
        usd = None if ledger.usd is None or not whole else ledger.usd * seconds / whole
        dollars = f", {fmt.usd(usd)}" if usd is not None else ""
        what, how = st.columns([3, 2], vertical_alignment="center")
        what.markdown(f"{md(theme.title(name))}: {fmt.share(seconds / whole)}{md(dollars)}", help=theme.meaning([name]))
        for page in pages:
            if name in page.explains:
                with how:
                    st.page_link(page.file, label=page.explains[name], icon=page.icon, query_params={"run": run.run_id})
                break
