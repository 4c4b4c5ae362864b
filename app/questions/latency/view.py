"""The views of the latency page: first token, distributions, over time, gaps, tenants, loads. Chosen in the address."""

from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from analyzers.serving.latency import ServingResult
from analyzers.serving.latency.summary import METRICS
from app.components.by_itself import fragment
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.current import switch
from app.components.on_timeline import on_timeline
from app.components.question_page import Told
from app.components.text import md
from app.questions.latency import figure as draw
from app.questions.latency.words import CAUSES, NAMES
from app.questions.latency.words import verdict as serving_verdict
from app.timeline.places import place_of
from errors import format as fmt

VIEWS = {
    "first": "First token",
    "spread": "Distributions",
    "time": "Over time",
    "gaps": "Between tokens",
    "tenants": "Tenants",
    "loads": "Loads",
}
LATENCIES = {"ttft_s": "TTFT", "tpot_s": "TPOT", "e2e_s": "E2E", "queue_s": "Queue"}
SHOWN_ROWS = 1000


def views(result: ServingResult) -> dict[str, str]:
    """Those that this run can fill."""
    there = {
        "first": len(result.split) > 0,
        "spread": bool(result.distributions),
        "time": len(result.windows) > 0,
        "gaps": result.gaps is not None,
        "tenants": len(result.tenants) > 0,
        "loads": len(result.loads) > 1,
    }
    return {name: text for name, text in VIEWS.items() if there[name]}


@fragment
def explore(told: Told[ServingResult]) -> None:
    """One view at a time, a sentence before it, and the rows to take away."""
    result, name = told.result, told.name
    possible = views(result)
    figure: go.Figure | None = None
    if possible:
        with st.container(horizontal=True, horizontal_alignment="distribute"):
            view = switch("View", "view", possible, next(iter(possible)))
            metric = _metric(result) if view in ("time", "tenants", "loads") else "ttft_s"
        figure = _figure(result, view, metric)
        st.markdown(_sentence(result, view, metric))
        if figure is None:
            st.info("There is nothing to draw: no request tells it.", icon=":material/info:")
        else:
            chart(figure, f"latency {view} {metric}", f"{name}-{view}", serving_verdict(result))
        _beside(result, view)
    _evidence(told, figure)


def _metric(result: ServingResult) -> str:
    known = {n: t for n, t in LATENCIES.items() if any(n in load.latency for load in (result.load, *result.loads))}
    return switch("Latency", "metric", known, next(iter(known))) if known else "ttft_s"


def _figure(result: ServingResult, view: str, metric: str) -> go.Figure | None:
    made = {
        "first": lambda: draw.ttft_split(result),
        "spread": lambda: draw.distributions(result),
        "time": lambda: draw.over_time(result, metric),
        "gaps": lambda: draw.gap_heat(result, st.context.theme.type == "dark"),
        "tenants": lambda: draw.tenants(result, metric),
        "loads": lambda: draw.loads(result, metric),
    }
    return made[view]()


def _sentence(result: ServingResult, view: str, metric: str) -> str:
    """What is to be seen in a view, before it."""
    if view == "first":
        told = result.split["queue_s"].notna().all()
        return (
            "**Time to first token**, requests in order of it, split into waiting in the queue and reading the prompt."
            if told
            else "**Time to first token**, requests in order of it. When each was scheduled is "
            "not told: queue and prefill cannot be told apart."
        )
    if view == "gaps":
        found = result.gaps
        return (
            f"**Gaps between pieces of output over time.** {fmt.count(found.stalls, 'stall')} among "
            f"{fmt.count(found.count, 'gap')}: longer than {md(fmt.duration(found.threshold_s))}. An upright "
            "stripe is an instant at which all requests waited at once."
        )
    return {
        "spread": "**Distributions.** Where a curve crosses the dashed lines is its median and its p99.",
        "time": f"**{NAMES[metric]} by time of arrival.** A rise that does not end is a queue that grows: more came "
        "than was served.",
        "tenants": f"**{NAMES[metric]} of each tenant**, beside all requests (dotted grey).",
        "loads": f"**{NAMES[metric]} of each load**, from its median to its p99.",
    }[view]


def _beside(result: ServingResult, view: str) -> None:
    """The table that belongs to a view."""
    if view == "gaps" and len(result.gaps.causes):
        table = result.gaps.causes
        draw_table(
            pd.DataFrame(
                {
                    "Cause of the stall": [CAUSES[c] for c in table["cause"]],
                    "Stalls": table["stalls"],
                    "Lost beyond a usual gap (request-seconds)": table["lost_s"],
                    "Share of all generating (%)": table["share_of_time"] * 100,
                }
            ),
            hide_index=True,
        )
    if view == "tenants":
        draw_table(result.tenants)
    if view == "loads":
        draw_table(load_rows(result))


def load_rows(result: ServingResult) -> pd.DataFrame:
    """One row a load, latencies in seconds."""
    return pd.DataFrame(
        [
            {
                "load": x.stage,
                "requests": x.requests,
                "failed": x.failed,
                "duration_s": x.duration_s,
                "requested_rate_per_s": x.requested_rate_per_s,
                "max_concurrency": x.max_concurrency,
                "request_rate_per_s": x.request_rate_per_s,
                "output_tokens_per_s": x.output_tokens_per_s,
                **{
                    f"{m.removesuffix('_s')}_{s}_s": x.statistic(m, s)
                    for m in METRICS
                    for s in ("mean", "p50", "p99")
                    if m in x.latency
                },
            }
            for x in result.loads
        ]
    )


def _evidence(told: Told[ServingResult], figure: go.Figure | None) -> None:
    """Requests, the slowest first, or loads where there are no single requests; failures by error."""
    result = told.result
    if len(result.failures):
        st.markdown("**What failed**, by error; numbers in messages are shown as #.")
        draw_table(result.failures)
    if len(result.rows):
        rows = result.rows.dropna(axis="columns", how="all").sort_values("e2e_s", ascending=False, kind="stable")
        title = f"Evidence: {fmt.count(len(rows), 'request')}, the slowest first"
    else:
        rows, title = load_rows(result), f"Evidence: {fmt.count(len(result.loads), 'load')}"
    with st.expander(title, icon=":material/table:"):
        _slowest(told, rows)
        draw_table(rows.head(SHOWN_ROWS))
        if len(rows) > SHOWN_ROWS:
            st.caption(f"The first {SHOWN_ROWS:,} of {len(rows):,} are shown; the files below hold all.")
        told.downloads(rows, figure, "latency")


def _slowest(told: Told[ServingResult], rows: pd.DataFrame) -> None:
    """The way to the slowest request on the timeline."""
    of = told.result.load.served
    if of is None or "e2e_s" not in rows or not len(rows) or pd.isna(rows["e2e_s"].iloc[0]):
        return
    took = fmt.duration(float(rows["e2e_s"].iloc[0]))
    on_timeline(
        told.run, place(of.rows.loc[rows.index[0]].to_dict()), f"The slowest, which took {took}, on the timeline"
    )


def place(row: dict[Any, Any]) -> dict[str, str]:
    """Of a request, from its arrival to its last token, on its replica; none where it is not told when that was."""
    if pd.isna(row["last_token_ns"]):
        return {}
    replica = "" if pd.isna(row["replica"]) else str(row["replica"])
    return place_of(start_ns=row["arrival_ns"], end_ns=row["last_token_ns"], host=replica)
