"""The run's objectives (SLO): which requests came in time, and why not the others?"""

import pandas as pd
import streamlit as st

from analyzers.serving.exposed import Exposed
from analyzers.serving.latency import ServingResult
from analyzers.serving.objective_causes import CAUSES
from analyzers.serving.objectives import SloResult, by_histograms, suggested, suggested_by
from app import format as fmt
from app.components.answering import answering
from app.components.chart import chart
from app.components.current import current_run, switch
from app.components.downloads import downloads
from app.components.figures_row import Figure, figures_row
from app.components.header import header
from app.components.howto import howto
from app.components.load_choice import load_choice
from app.components.verdict import verdict
from app.figures.base import standalone
from app.questions.asking import ask
from app.questions.latency import LATENCY
from app.questions.objectives import OBJECTIVES
from app.questions.objectives import figure as draw
from app.questions.objectives.controls import objectives
from app.questions.objectives.words import SERVER
from app.questions.objectives.words import verdict as slo_verdict
from runs.run import Run

VIEWS = {"surface": "TTFT and TPOT at once", "curves": "One threshold at a time"}
SHOWN_ROWS = 1000


def page() -> None:
    run, extras, place = current_run()
    with header(run, extras):
        beside = st.container()
    with answering("Reading requests", lambda: howto(run, OBJECTIVES.terms, (), OBJECTIVES.inputs)):
        stage = st.query_params.get("stage") or None
        known = ask(LATENCY, run, {"stage": stage} if stage else {}, place.registry)
        told = None if stage else by_histograms(run.tables)
        if not len(known.rows) and told is None:
            ask(
                OBJECTIVES, run, {"stage": stage} if stage else {}, place.registry
            )  # it says what would bring an answer
    with beside:
        load_choice([load for load in known.loads if load.served is not None], "All requests together")
    asked = chosen(known, told)
    given = dict(asked, stage=stage) if stage else dict(asked)
    if not asked:
        st.info("Enter at least one objective above.", icon=":material/flag:")
        howto(run, OBJECTIVES.terms, (), OBJECTIVES.inputs)
        return
    with answering("Judging requests", lambda: howto(run, OBJECTIVES.terms, (), OBJECTIVES.inputs)):
        result = ask(OBJECTIVES, run, given, place.registry)
    verdict(slo_verdict(result))
    figures_row(figures(result))
    explore(run, result)
    howto(run, OBJECTIVES.terms, result.notes, OBJECTIVES.inputs)


def chosen(known: ServingResult, told: Exposed | None) -> dict[str, float]:
    """The objectives of the address; without any a suggestion, said to be one."""
    start = suggested(known.rows) if told is None else suggested_by(told)
    found = objectives(start)
    if start and found == start and "ttft_s" not in st.query_params:
        st.caption("These are a suggestion, the 90th percentiles of this run rounded up; enter what you promised.")
    return found


def figures(result: SloResult) -> list[Figure]:
    """Attainment, goodput, the share of completed requests, and what most missed for."""
    worst = max(result.misses.items(), key=lambda item: item[1]) if result.misses else None
    best = fmt.number(result.best_goodput_per_s)
    low, high = fmt.share(result.attainment), fmt.share(result.attainment_high)
    by_server = result.load.tool == SERVER  # a range
    return [
        Figure(
            "Attainment",
            f"{low} to {high}" if by_server and low != high else low,
            OBJECTIVES.meaning("Attainment"),
            "derived",
        ),
        Figure(
            "Goodput (req/s)",
            fmt.number(result.goodput_per_s),
            f"{OBJECTIVES.meaning('Serving goodput')} All sent: {best} per second.",
            "derived",
        ),
        Figure(
            "Of completed", fmt.share(result.attainment_of_completed), OBJECTIVES.meaning("Of completed"), "derived"
        ),
        Figure("Most missed for", fmt.NO_VALUE, "Single requests would tell why one missed.", "derived")
        if by_server
        else Figure(
            "Most missed for",
            draw.CAUSE_NAMES[worst[0]] if worst else "nothing",
            f"{worst[1]:,} requests: {CAUSES[worst[0]]}." if worst else "No request missed.",
            "derived",
        ),
    ]


def explore(run: Run, result: SloResult) -> None:
    """Misses by cause, attainment against thresholds, and the requests that missed."""
    name, words = f"{run.manifest.name}-objectives", slo_verdict(result)
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
    figure = draw.surface(result) if view == "surface" else draw.curves(result)
    chart(figure, f"slo {view}", f"{name}-{view}", words)
    if len(result.tenants):
        st.markdown("**By tenant**")
        shown = result.tenants.assign(attainment=result.tenants["attainment"] * 100)
        st.dataframe(shown.rename(columns={"attainment": "attainment (%)"}), hide_index=True)
    rows = result.missed.dropna(axis="columns", how="all")
    with st.expander(f"Evidence: {fmt.count(len(rows), 'request')} that missed", icon=":material/table:"):
        st.dataframe(rows.head(SHOWN_ROWS), hide_index=True)
        if len(rows) > SHOWN_ROWS:
            st.caption(f"The first {SHOWN_ROWS:,} of {len(rows):,} are shown; the files below hold all.")
        asked = "&".join(f"{n}={v:g}" for n, v in result.objectives.items())
        downloads(
            pd.DataFrame(rows),
            name,
            f"/api/runs/{run.run_id}/show/objectives?{asked}",
            lambda: standalone(figure, f"{run.manifest.name}: objectives", name),
        )


if __name__ == "__main__":
    page()
