"""A or B: what changed from one run to another, is it worse, and is the difference more than chance?"""

import pandas as pd
import streamlit as st

from analyzers.difference.differs import differs
from analyzers.serving.ab import METRICS, AbResult
from analyzers.serving.ab_terms import PAIRED, TERMS
from analyzers.serving.served import served
from app.baselines import find_run
from app.comparing import words
from app.comparing.both_timelines import both_timelines
from app.comparing.requests import compare_runs
from app.components.answering import answering
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.current import current_run, switch
from app.components.downloads import downloads
from app.components.figures_row import Figure, figures_row
from app.components.header import header
from app.components.howto import howto
from app.components.model_picker import pick
from app.components.report_buttons import OF_TWO, report_buttons
from app.components.text import md
from app.components.verdict import beyond, verdict
from app.figures.base import standalone
from app.menu import kind_of
from app.pages.compare import MODEL
from app.pages.compare import figure as draw
from app.pages.compare.jobs import two_jobs
from app.pages.compare.model import LABEL, beside
from app.words import Verdict
from app.workspace import Workspace
from errors import format as fmt
from runs.run import Run

INPUTS = ("requests",)
NOBODY = ""
MOST = 500
LONELY = {
    "serving": "This is the only run with single requests in this store. Add another one to compare with: "
    "the same load against a second setup.",
    "job": "This is the only run of its kind in this store. Add another one of the same job to compare with.",
}


def page() -> None:
    run, extras, place = current_run()
    with header(run, extras):
        other = partner(run, place)
    if other is None and st.query_params.get("with") == MODEL:
        beside(run, place)
        return
    if kind_of(run) != "serving":
        if other is not None:
            two_jobs(run, other, place)
        return
    if other is None:
        howto(run, TERMS, (), INPUTS)
        return
    with answering("Comparing request by request", lambda: howto(run, TERMS, (), INPUTS)):
        result = compare_runs(run, other)
    known = differs(run.manifest.facts, other.manifest.facts)
    said = words.verdict(result, run.manifest.name, other.manifest.name, known)
    verdict(said)
    figures_row(figures(result))
    for warning in result.traffic.warnings:
        st.warning(md(warning), icon=":material/warning:")
    explore(run, other, result, said)
    both_timelines(run, other)
    report_buttons(f"/api/compare/report?a={run.run_id}&b={other.run_id}", OF_TWO)
    beyond(said)
    howto(run, TERMS, result.notes, INPUTS)


def partner(run: Run, place: Workspace) -> Run | None:
    """The run to compare with, as `with=` in the address names it; where none is chosen the page says how to."""
    store = place.store
    others = {r.run_id: r.manifest.name for r in store.runs() if r.run_id != run.run_id and comparable(run, r)}
    wanted, model = st.query_params.get("with", NOBODY), {MODEL: LABEL} if kind_of(run) == "job" else {}
    if wanted and wanted not in (*others, *model):  # a name, the beginning of an id, or a baseline
        with answering("Looking for it", lambda: None):
            found = find_run(place, wanted)
        others[found.run_id] = found.manifest.name
        st.query_params["with"] = found.run_id
    if not others and not model:
        st.info(
            LONELY["serving" if kind_of(run) == "serving" else "job"],
            icon=":material/compare_arrows:",
        )
        return None
    listed = dict(list(others.items())[:MOST])
    listed |= {k: v for k, v in others.items() if k == st.query_params.get("with")}
    now = pick("Compare with (B)", "with", {NOBODY: "Choose a run", **model, **listed}, NOBODY, width=340)
    if now == MODEL:
        return None
    if now == NOBODY:
        st.info(f"{md(run.manifest.name)} is A. Choose B, the run to compare with.", icon=":material/compare_arrows:")
        return None
    return store.find(now)


def comparable(run: Run, other: Run) -> bool:
    """Served runs with single requests, jobs with steps, programs that were compiled: each with its like."""
    alike = kind_of(run) == kind_of(other)
    table = {"serving": "requests", "job": "steps", "compiled": "ops"}[kind_of(run)]
    return alike and bool(other.manifest.tables.get(table))


def figures(result: AbResult) -> list[Figure]:
    """What is told of TTFT, TPOT and throughput, and how many requests it rests on."""
    found = {(d.metric, d.statistic): d for d in result.differences}
    shown = []
    for key in words.ORDER[:4]:
        if (d := found.get(key)) is not None:
            shown.append(
                Figure(
                    f"{words.name(d)}: A · B",
                    f"{words.value(d.metric, d.a)} · {words.value(d.metric, d.b)}",
                    f"{words.telling(d).capitalize()}. 95 % interval of the difference: {words.interval(d)}.",
                    "derived",
                )
            )
    counts = f"{result.requests[0]:,} · {result.requests[1]:,}"
    how = f"{PAIRED.meaning} {fmt.count(result.paired, 'pair')}." if result.paired else "Not paired."
    return [*shown, Figure("Requests: A · B", counts, how, "measured")]


def explore(run: Run, other: Run, result: AbResult, said: Verdict) -> None:
    """All differences on one axis, both distributions of one latency, and the rows to take away."""
    a, b = run.manifest.name, other.manifest.name
    name = f"{a}-or-{b}"
    st.markdown("**B over A**, with 95 % intervals: one that crosses the dashed line tells no difference.")
    figure = draw.differences(result)
    if figure is not None:
        chart(figure, "differences", name, said)
    known = {m: words.NAMES[m] for m in METRICS if any(d.metric == m for d in result.differences)}
    if known:
        metric = switch("Latency", "metric", known, next(iter(known)))
        st.markdown(f"**Distribution of {known[metric]}** in both: the curve further left is the faster.")
        drawn = draw.distributions(served(run.tables), served(other.tables), metric, (a, b))
        if drawn is not None:
            chart(drawn, f"both {metric}", f"{name}-{metric}", said)
    st.markdown("**What was asked of both**: where it differs, not the engines alone are compared.")
    draw_table(result.traffic.rows.rename(columns={"a": "A", "b": "B"}))
    rows = pd.DataFrame([dict(vars(d), tells=words.telling(d)) for d in result.differences]).drop(columns="why")
    with st.expander(f"Evidence: {fmt.count(len(rows), 'figure')}", icon=":material/table:"):
        draw_table(rows)
        downloads(
            rows,
            name,
            f"/api/runs/{run.run_id}/show/latency",
            lambda: standalone(figure, f"{a} or {b}", name) if figure else b"",
        )


if __name__ == "__main__":
    page()
