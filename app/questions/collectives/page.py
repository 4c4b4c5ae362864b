"""The run's collectives: which ran over which axis, how fast were they, and what bounds them?"""

import streamlit as st

from analyzers.ranks.collectives import CollectivesResult
from app import format as fmt
from app.components.answering import answering
from app.components.chart import chart
from app.components.current import current_run, switch
from app.components.downloads import downloads
from app.components.figures_row import Figure, figures_row
from app.components.header import header
from app.components.howto import howto
from app.components.text import md
from app.components.verdict import verdict
from app.figures.base import standalone
from app.questions.asking import ask
from app.questions.collectives import COLLECTIVES
from app.questions.collectives import figure as draw
from app.questions.collectives.words import rate
from app.questions.collectives.words import verdict as collectives_verdict
from runs.run import Run

VIEWS = {"time": "Time by axis", "bandwidth": "Bandwidth by size"}


def page() -> None:
    run, extras, place = current_run()
    header(run, extras)
    with answering("Reading the collectives", lambda: howto(run, COLLECTIVES.terms, (), COLLECTIVES.inputs)):
        result = ask(COLLECTIVES, run, {}, place.registry)
    verdict(collectives_verdict(result))
    figures_row(figures(result))
    picture(run, result)
    howto(run, COLLECTIVES.terms, result.notes, COLLECTIVES.inputs)


def figures(result: CollectivesResult) -> list[Figure]:
    """Time, waiting, exposure and the best bandwidth; of a program counts, bytes and the link's bound."""
    t = result.totals
    if not result.measured:
        meaning = "In one run of the program, on one device."
        return [
            Figure("Collectives", fmt.number(t["count"]), meaning, "modelled"),
            Figure("Bytes", fmt.size(t["bytes"]), meaning + " Operands, before what the algorithm adds.", "modelled"),
            Figure(
                "Least time", fmt.duration(t["bound_s"]), f"By the link alone: {md(result.link_words)}.", "modelled"
            ),
        ]
    whole = t["total_s"] or 1.0
    best = result.rows["busbw_bytes_per_s"].max()
    share = result.rows["share_of_link"].max()
    return [
        Figure("In collectives", f"{fmt.number(t['total_s'])} s", "Device-seconds, all executions added.", "measured"),
        Figure(
            "Waiting",
            fmt.share(None if t["wait_s"] is None else t["wait_s"] / whole),
            "Of that. " + COLLECTIVES.meaning("Waiting"),
            "derived",
        ),
        Figure("Exposed", fmt.share(t["exposed_s"] / whole), "Of that. " + COLLECTIVES.meaning("Exposed"), "measured"),
        Figure("Best bus bandwidth", rate(best), COLLECTIVES.meaning("Bus bandwidth"), "derived"),
        Figure(
            "Best share of link",
            fmt.share(None if share != share else share),
            f"{COLLECTIVES.meaning('Share of link')} Link: {md(result.link_words) or 'not known for this chip'}.",
            "derived",
        ),
    ]


@st.fragment
def picture(run: Run, result: CollectivesResult) -> None:
    """Time by kind and axis, or bandwidth over size; and the rows to take away."""
    view = switch("View", "view", VIEWS, "time") if result.measured else "time"
    name = f"{run.manifest.name}-collectives-{view}"
    if view == "bandwidth":
        st.markdown("**Bus bandwidth by message size**; the larger a mark, the more time went there.")
        figure = draw.bandwidth(result)
    else:
        what = "moving data or waiting" if result.measured else "the link needs at least"
        st.markdown(
            f"**Time by kind and mesh axis**: what collectives spent {what}."
            if result.measured
            else f"**By kind and mesh axis**: what {what}."
        )
        figure = draw.time_by_axis(result)
    if figure is None:
        st.info("Their sizes or times are not known, so nothing can be drawn.", icon=":material/info:")
    else:
        chart(figure, f"collectives {view}", name, collectives_verdict(result))
    with st.expander(f"Evidence: {fmt.count(len(result.rows), 'row')}", icon=":material/table:"):
        st.dataframe(result.rows.head(5000).dropna(axis="columns", how="all"), hide_index=True)
        downloads(
            result.rows,
            name,
            f"/api/runs/{run.run_id}/show/collectives",
            lambda: standalone(figure, f"{run.manifest.name}: collectives", name) if figure else b"",
        )


if __name__ == "__main__":
    page()
