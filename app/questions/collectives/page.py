"""The run's collectives: which ran over which axis, how fast were they, and what bounds them?"""

import streamlit as st

from analyzers.ranks.collectives import CollectivesResult
from app.components.by_itself import fragment
from app.components.chart import chart
from app.components.current import switch
from app.components.figures_row import Figure
from app.components.question_page import Told, question_page
from app.components.text import md
from app.questions.collectives import COLLECTIVES
from app.questions.collectives import figure as draw
from app.questions.collectives.words import rate
from errors import format as fmt

VIEWS = {"time": "Time by axis", "bandwidth": "Bandwidth by size"}


def page() -> None:
    question_page(COLLECTIVES, "Reading the collectives", figures, picture)


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
    waiting = None if t["wait_s"] is None else t["wait_s"] / whole
    uncovered = None if t["uncovered_s"] is None else t["uncovered_s"] / whole
    best = result.rows["busbw_bytes_per_s"].max()
    share = result.rows["share_of_link"].max()
    return [
        Figure("In collectives", f"{fmt.number(t['total_s'])} s", "Device-seconds, all executions added.", "measured"),
        Figure(
            "Waiting",
            fmt.share(waiting),
            "Of that. " + COLLECTIVES.meaning("Waiting"),
            "derived",
            waiting,
            "less",
        ),
        Figure(
            "Not covered",
            fmt.share(uncovered),
            "Of that. " + COLLECTIVES.meaning("Not covered"),
            "measured",
            uncovered,
            "less",
        ),
        Figure("Best bus bandwidth", rate(best), COLLECTIVES.meaning("Bus bandwidth"), "derived", best, "more"),
        Figure(
            "Best share of link",
            fmt.share(None if share != share else share),
            f"{COLLECTIVES.meaning('Share of link')} Link: {md(result.link_words) or 'not known for this chip'}.",
            "derived",
        ),
    ]


@fragment
def picture(told: Told[CollectivesResult]) -> None:
    """Time by kind and axis, or bandwidth over size; and the rows to take away."""
    result = told.result
    view = switch("View", "view", VIEWS, "time") if result.measured else "time"
    name = f"{told.name}-{view}"
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
        chart(figure, f"collectives {view}", name, told.verdict)
    told.evidence(result.rows, fmt.count(len(result.rows), "row"), figure, "collectives", view)


if __name__ == "__main__":
    page()
