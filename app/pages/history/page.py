"""History: a metric over the runs of a job, in order of time or of commits, and where it changed for good."""

from typing import Any
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from app.components.chart import chart
from app.components.columns import draw_table
from app.components.downloads import downloads
from app.components.figures_row import Figure, figures_row
from app.components.howto import terms_list
from app.components.notice import notice
from app.components.option import control, in_address
from app.components.page_head import page_head
from app.components.text import md
from app.components.verdict import beyond, verdict
from app.figures.base import standalone
from app.history.choices import choices
from app.history.options import ASKED, BY, CALLED, GROUP, METRIC, SEARCH
from app.history.told import TIME, Asked, Told, tell
from app.pages.compare import COMPARE
from app.pages.history import HISTORY
from app.pages.history.figure import over_runs
from app.workspace import Workspace
from errors import ChipledgerError
from errors import format as fmt

FIRST = "step_time"  # what is asked of where nothing is
NAME = "history"
UNITS = {"s": "_s", "1": "_share", "tokens/s": "_tokens_per_s"}  # of a metric, as endings of keys


def page() -> None:
    place = page_head("History")
    try:
        given = {METRIC.name: FIRST, **in_address(ASKED)}
        with st.spinner("Looking at run after run"):
            told = tell(Asked(**given), place)
    except ChipledgerError as e:
        notice(e, library=False)
        controls(place)
    else:
        show(told, given, place)
    with st.expander("How this is computed", icon=":material/function:"):
        terms_list(HISTORY.terms)


def show(told: Told, given: dict, place: Workspace) -> None:
    verdict(told.verdict)
    controls(place)
    figures_row(figures(told))
    for note in told.notes:
        st.caption(md(note))
    ranged = any(p.low != p.high for p in told.result.points)
    whiskers = " Whiskers are the range of a run by its own scatter." if ranged else ""
    marks = " A triangle is a change for good, the dotted line the level on either side." if told.sentences else ""
    each = "run by run" if told.by == TIME else "point by point"
    st.markdown(f"**How did {told.metric.inside} go, {each}?**{whiskers}{marks}")
    chart(over_runs(told), "over runs", NAME, told.verdict.whole)
    changed(told)
    evidence(told, given)
    beyond(told.verdict)


def controls(place: Workspace) -> None:
    """Which metric, of which runs, and what a point is; offered is what the store has."""
    offered = choices(place)
    row = st.columns([3, 3, 2, 2])
    with row[0]:
        control(METRIC, FIRST, texts=offered.metrics)
    with row[1]:
        control(CALLED, None, texts=offered.names, unset="All", label="Runs called")
    with row[2]:
        control(GROUP, None, texts=offered.groups, unset="All")
    with row[3]:
        control(BY, BY.default, texts=offered.by, label="A point for each")
    control(SEARCH, SEARCH.default, empty="chip:v5p tag:branch=main")


def figures(told: Told) -> list[Figure]:
    points, changes = told.result.points, told.result.changes
    of, last = told.metric, points[-1]
    each = "Runs" if told.by == TIME else "Points"
    shown = [
        Figure(each, f"{len(points):,}", f"Of {fmt.count(told.runs, 'run')} that tell it.", "measured"),
        Figure("Latest", of.shown(last.value), f"{of.title} of {md(last.label)}.", "derived"),
    ]
    if told.result.judged:
        how = "Places from which another level was kept, with less than 0.5 % left to chance each."
        shown.append(Figure("Changes for good", f"{len(changes):,}", how, "derived"))
    if changes:
        shown.append(Figure("Level now", of.shown(changes[-1].after), "Of the runs since the last change.", "derived"))
    return shown


def changed(told: Told) -> None:
    """A sentence for each change, with the way to what made it."""
    for n, (change, said) in enumerate(zip(told.result.changes, told.sentences, strict=True), 1):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{n}** {md(said)}", width="content")
            ends = {"run": change.last.runs[-1], "with": change.first.runs[0]}
            st.page_link(COMPARE.file, label="What made it", icon=COMPARE.icon, query_params=ends)


def evidence(told: Told, given: dict) -> None:
    address = f"/api/history?{urlencode({k: v for k, v in given.items() if v not in (None, '')})}"
    rows = pd.DataFrame(point_rows(told))
    with st.expander(f"Evidence: {fmt.count(len(rows), 'point')}", icon=":material/table:"):
        draw_table(rows.dropna(axis="columns", how="all"))
        downloads(rows, NAME, address, lambda: standalone(over_runs(told), f"History of {told.metric.title}", NAME))


def point_rows(told: Told) -> list[dict[str, Any]]:
    """A row a point, with the change beside the first of a new level."""
    unit, begins = UNITS[told.metric.unit], {c.first.runs: c.change for c in told.result.changes}
    return [
        {
            "of": p.label,
            "at_ns": p.at_ns,
            f"value{unit}": p.value,
            f"low{unit}": p.low,
            f"high{unit}": p.high,
            "changed_by_share": begins.get(p.runs),
            "runs": len(p.runs),
            "first_run_id": p.runs[0],
        }
        for p in told.result.points
    ]


if __name__ == "__main__":
    page()
