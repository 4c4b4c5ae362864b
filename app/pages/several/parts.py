"""Many runs, the parts of the page: what differs, curves, two numbers against each other, and scaling."""

from collections.abc import Mapping
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from analyzers.several.curves import Curve
from app.comparing.several import scaling_words, words
from app.comparing.several.answer import Several
from app.comparing.several.growing import grown
from app.comparing.several.options import ASKED, COLOUR, CURVES, OVER, SMOOTH, X, Y
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.current import switch
from app.components.downloads import downloads
from app.components.option import control
from app.components.text import md
from app.figures.base import standalone
from app.pages.scaling import SCALING_PAGE
from app.pages.several import curves as lines
from app.pages.several import scaling, scatter, table
from app.words import short
from errors import format as fmt

NAME = "many-runs"
MOST_AXES = 7


def differing(found: Several, turned: bool) -> None:
    """The table, runs across where it is `turned`, what is folded, and the rows to take away."""
    st.markdown(
        f"**What differs?** Only what is not the same in all. A dash is *not told*, and never 0. "
        f"Changes are against {md(short(found.baseline.name))}."
    )
    table.draw(found, turned)
    already = words.verdict(found).whole
    for note in (n for n in found.notes if n not in already):
        st.caption(md(note))
    rest = table.same(found)
    if len(rest):
        with st.expander(f"The same in all, or told by some alone ({len(rest):,})", icon=":material/unfold_more:"):
            st.dataframe(rest, hide_index=True)
    downloads(table.down(found), NAME, address(), None)


def address(**more: str) -> str:
    """Of the JSON answer; `more`: what is asked besides the address of the page."""
    known = {o.name: v for o in ASKED if (v := st.query_params.get(o.name, "").strip())} | more
    return f"/api/several?{urlencode(known)}"


def curves(found: Several) -> None:
    """The curves of one value, each run in its colour."""
    if not any(found.chosen.runs[n].manifest.tables.get("steps") for n in found.read):
        return
    st.markdown("**How did it go, step by step?** Each run in one colour; steps that are no usual ones are hollow.")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        of = switch("Curve", "curve", lines.TITLES, CURVES[0])
        over = switch("Over", "over", lines.OVERS, OVER.default)
        smooth = control(SMOOTH, 1, label="Smooth over steps", width=150)
    told = found.curves(of, over, int(smooth or 1))
    drawn: Mapping[str, Curve] = {i: c for i, c in told.items() if isinstance(c, Curve)}
    members = {m.run_id: m for m in found.members}
    if drawn:
        st.caption(md(lines.said(drawn, of, int(smooth or 1))))
        figure = lines.overlaid(drawn, members, [m.run_id for m in found.members], of, over)
        chart(figure, f"curves {of} {over}", f"{NAME}-{of}", f"{lines.TITLES[of]} of {len(drawn)} runs.")
        rows = pd.concat(
            [
                pd.DataFrame({"run": members[i].name, "x": c.x, "y": c.y, "low": c.low, "high": c.high})
                for i, c in drawn.items()
            ]
        )
        with st.expander(f"Evidence: {fmt.count(len(rows), 'point')}", icon=":material/table:"):
            downloads(rows, f"{NAME}-{of}", address(curve=of), lambda: standalone(figure, "Curves", NAME))
    for run_id, why in told.items():
        if isinstance(why, str):
            st.caption(f"No curve of {md(short(members[run_id].name))}: {md(why)}.")


def two_numbers(found: Several) -> None:
    """Any two numbers against each other, or several beside one another."""
    offered = scatter.numbers(found)
    if len(offered) < 2:
        return
    st.markdown("**Which run gives more for less?** Any two numbers, with what their product or quotient means.")
    usual = "chips" if "chips" in offered else next(n for n in offered if n != next(iter(offered)))
    places = st.columns([2, 2, 2, 2], vertical_alignment="bottom")
    with places[0]:
        x = control(X, usual, texts=offered, label="Across")
    with places[1]:
        y = control(Y, next(n for n in offered if n != usual), texts=offered, label="Up")
    with places[2]:
        by = control(COLOUR, None, texts=scatter.facts(found), unset="Each run its own") or ""
    with places[3].container(horizontal_alignment="right"):
        view = switch("Picture", "picture", {"scatter": "Two", "parallel": "Several"}, "scatter")
    x, y = (n if n in offered else usual for n in (x, y))
    if view == "parallel":
        axes = [scatter.axis(found, n) for n in list(offered)[:MOST_AXES]]
        st.caption("A line a run; one that does not tell all of them is left out. Drag along an axis to choose some.")
        chart(scatter.parallel(found, axes, by), "parallel", f"{NAME}-parallel", "Several numbers of each run.")
        return
    figure, told = scatter.scatter(found, scatter.axis(found, x), scatter.axis(found, y), by)
    if told:
        st.caption(md(told))
    chart(figure, "scatter", f"{NAME}-{x}-{y}", f"{offered[y]} over {offered[x]}.")


def series(found: Several) -> None:
    """Runs that differ in their chips alone: efficiency, and which account eats it."""
    if not any(m.facts.get("chips") for m in found.members):
        return
    with st.spinner("Holding the runs against the smallest"):
        told = grown(found)
    for one in told.series:
        st.markdown(f"**{md(scaling_words.sentence(one))}**")
        chart(scaling.efficiency(one), f"scaling {one.kind}", f"{NAME}-{one.kind}", scaling_words.sentence(one))
        drawn = scaling.accounts(one)
        if drawn is not None:
            st.markdown("**Which account eats it?** A step on one chip, by account, over profiled steps.")
            chart(drawn, f"accounts {one.kind}", f"{NAME}-{one.kind}-accounts", "A step by account over chips.")
        for text in (f"No serial share: {one.why}." if one.why else "", scaling_words.untold(one)):
            if text:
                st.caption(md(text))
        named = {"runs": ",".join(p.run_id for p in one.points), "kind": one.kind}
        st.page_link(SCALING_PAGE.file, label="Carry it on to more chips", icon=SCALING_PAGE.icon, query_params=named)
        with st.expander(f"Evidence: {fmt.count(len(one.points), 'run')}", icon=":material/table:"):
            draw_table(scaling.rows(one).dropna(axis="columns", how="all"))
            downloads(scaling.rows(one), f"{NAME}-{one.kind}", address(), None)
    for text in scaling_words.left_out(told):
        st.caption(md(text))
