"""Many runs: what differs between them, how each is against the baseline, their curves, and how a series scales."""

from collections.abc import Mapping
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from analyzers.several.curves import Curve
from analyzers.several.terms import TERMS
from app.comparing.several import scaling_words, words
from app.comparing.several.answer import Several, several
from app.comparing.several.growing import grown
from app.comparing.several.options import ASKED, BASELINE, COLOUR, CURVE, GROUP, OVER, QUERY, RUNS, SMOOTH, SORT, X, Y
from app.components.actions import copy_link
from app.components.answering import answering
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.current import open_workspace, switch
from app.components.downloads import downloads
from app.components.figures_row import Figure, figures_row
from app.components.howto import terms_list
from app.components.option import control, field, said
from app.components.text import md
from app.components.verdict import beyond, verdict
from app.figures.base import standalone
from app.library.table import table as rows_of
from app.pages.library import LIBRARY
from app.pages.scaling import SCALING_PAGE
from app.pages.several import curves as lines
from app.pages.several import scaling, scatter, table
from app.words import short
from errors import format as fmt

NAME = "many-runs"
MOST_AXES = 7
LOOK_AGAIN_SECONDS = 2.0
TURNED_UP_TO = 5  # runs that stand across unless asked otherwise: more do not fit
WORDS = {"down": "Runs down", "across": "Runs across"}


def page() -> None:
    st.set_page_config(page_title="Many runs · Chipledger")
    left, right = st.columns([4, 1], vertical_alignment="center")
    left.subheader("Many runs", anchor=False)
    with right.container(horizontal=True, horizontal_alignment="right"):
        copy_link()
    place = open_workspace()
    asked = {o.name: v for o in (RUNS, QUERY, GROUP) if (v := st.query_params.get(o.name, "").strip())}
    if not asked:
        st.info("Choose the runs: tick them in the list of runs and press *Compare*, or name them here.")
        st.page_link(LIBRARY.file, label="All runs", icon=":material/arrow_back:")
        form()
        return
    with answering("Laying the runs beside one another", form):
        found = several(
            place,
            [asked.get("runs", "")],
            asked.get("q", ""),
            asked.get("group", ""),
            st.query_params.get("sort", ""),
            st.query_params.get("baseline"),
        )
    show(found)
    if found.chosen.pending:
        wait(found)


@st.fragment(run_every=LOOK_AGAIN_SECONDS)
def wait(found: Several) -> None:
    """Draws the page again once half of the figures that lack are there."""
    lacking = sum(row.pending for row in rows_of(found.place).fresh(found.chosen.rows))
    if lacking <= found.chosen.pending // 2:
        st.rerun()
    st.caption(f"The figures of {fmt.count(lacking, 'run')} are being worked out.")


def show(found: Several) -> None:
    told = words.verdict(found)
    verdict(told)
    figures_row(figures(found))
    chosen(found)
    differing(found)
    curves(found)
    two_numbers(found)
    series(found)
    beyond(told)
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown("\n".join(f"- {md(note)}" for note in found.notes))
        terms_list(TERMS)
    with st.expander("Other runs", icon=":material/checklist:"):
        form()


def figures(found: Several) -> list[Figure]:
    """How many runs, what differs, and how many are slower or quicker than the baseline."""
    base = short(found.baseline.name, 24)
    shown = [
        Figure("Runs", f"{len(found.members):,}", "Those that could be read.", "measured"),
        Figure("Settings that differ", f"{len(found.table.settings):,}", "Of those that two runs tell.", "measured"),
        Figure("The same in all", f"{len(found.table.common):,}", "Settings and figures; folded below.", "measured"),
    ]
    told = [h for h in found.steps if h is not None]
    if told:
        counts = [sum(h.worse is want for h in told) for want in (False, True, None)]
        how = f"Steps against {base}: quicker, slower, and those whose range holds no change or that have none."
        shown.append(Figure("Quicker · slower · not told", " · ".join(map(str, counts)), how, "derived"))
    return shown


def chosen(found: Several) -> None:
    """The baseline and the order, kept in the address."""
    names = {m.run_id: m.name for m in found.members}
    columns = st.columns([2, 2, 2], vertical_alignment="bottom")
    with columns[0]:
        control(BASELINE, found.members[0].run_id if not said(BASELINE) else found.baseline.run_id, texts=names)
    orders = {"name": "Name"} | {x.name: words.title(x.name) for x in found.table.differs}
    both = {k: v for n, t in orders.items() for k, v in ((n, f"{t}, least first"), (f"-{n}", f"{t}, most first"))}
    with columns[1]:
        control(SORT, None, texts=both, unset="As chosen", label="Order")
    with columns[2].container(horizontal_alignment="right"):
        switch("Table", "table", WORDS, _usual(found))


def _usual(found: Several) -> str:
    return "across" if len(found.members) <= TURNED_UP_TO else "down"


def differing(found: Several) -> None:
    """The table, what is folded, and the rows to take away."""
    st.markdown(
        f"**What differs?** Only what is not the same in all. A dash is *not told*, and never 0. "
        f"Changes are against {md(short(found.baseline.name))}."
    )
    table.draw(found, st.query_params.get("table", _usual(found)) == "across")
    for note in found.notes:
        st.caption(md(note))
    rest = table.same(found)
    if len(rest):
        with st.expander(f"The same in all, or told by some alone ({len(rest):,})", icon=":material/unfold_more:"):
            st.dataframe(rest, hide_index=True)
    downloads(table.down(found), NAME, address(found), None)


def address(found: Several) -> str:
    """Of the JSON answer."""
    known = {o.name: v for o in ASKED if (v := st.query_params.get(o.name, "").strip())}
    return f"/api/several?{urlencode(known)}"


def curves(found: Several) -> None:
    """The curves of one value, each run in its colour."""
    if not any(found.chosen.runs[n].manifest.tables.get("steps") for n in found.read):
        return
    st.markdown("**How did it go, step by step?** Each run in one colour; steps that are no usual ones are hollow.")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        of = switch("Curve", "curve", lines.TITLES, CURVE.kind[0])
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
            downloads(rows, f"{NAME}-{of}", f"{address(found)}&curve={of}", lambda: standalone(figure, "Curves", NAME))
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
        if one.why:
            st.caption(md(f"No serial share: {one.why}."))
        named = {"runs": ",".join(p.run_id for p in one.points), "kind": one.kind}
        st.page_link(SCALING_PAGE.file, label="Carry it on to more chips", icon=SCALING_PAGE.icon, query_params=named)
        with st.expander(f"Evidence: {fmt.count(len(one.points), 'run')}", icon=":material/table:"):
            draw_table(scaling.rows(one).dropna(axis="columns", how="all"))
            downloads(scaling.rows(one), f"{NAME}-{one.kind}", address(found), None)
    for text in scaling_words.left_out(told):
        st.caption(md(text))


def _points(run: str, c: Curve) -> pd.DataFrame:
    return pd.DataFrame({"run": run, "x": c.x, "y": c.y, "low": c.low, "high": c.high})


def form() -> None:
    """Which runs: sent, it writes them into the address."""
    now = st.query_params
    with st.form("several", border=True):
        entered = {RUNS.name: field(RUNS, now.get(RUNS.name), lines=True)}
        for option, column in zip((QUERY, GROUP), st.columns(2), strict=True):
            with column:
                entered[option.name] = field(option, now.get(option.name))
        if not st.form_submit_button("Lay them beside one another", type="primary", icon=":material/compare_arrows:"):
            return
    st.query_params.from_dict({n: v for n, v in entered.items() if v})
    st.rerun()


if __name__ == "__main__":
    page()
