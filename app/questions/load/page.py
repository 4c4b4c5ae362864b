"""The load that a server bears: where is the knee, what does speed cost, and is the run in a steady state?"""

import pandas as pd
import streamlit as st

from analyzers.serving.load import LoadResult
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.current import choose, switch
from app.components.figures_row import Figure
from app.components.price import price_of_run
from app.components.question_page import Told, question_page
from app.components.text import md
from app.questions.load import LOAD
from app.questions.load import figure as draw
from app.questions.load.controls import further_runs, options
from app.questions.load.steady_figure import steady
from app.questions.load.words import rate_with_margin
from errors import format as fmt

VIEWS = {
    "curve": "Load curve",
    "latency": "Latency",
    "pareto": "Speed and throughput",
    "cost": "Cost",
    "steady": "Steady state",
}
SHOWN = (
    "stage",
    "load",
    "request_rate_per_s",
    "keeping_up",
    "falls_behind",
    "out_of_proportion",
    "keeps_objectives",
    "output_tokens_per_s",
    "tokens_per_s_per_chip",
    "tokens_per_s_per_user",
    "in_flight",
    "in_flight_measured",
    "ttft_mean_s",
    "ttft_p50_s",
    "ttft_p99_s",
    "tpot_mean_s",
    "tpot_p99_s",
    "e2e_mean_s",
    "e2e_p99_s",
    "roofline_share",
    "usd_per_m_output_tokens",
    "completed",
    "failed",
    "duration_s",
    "basis",
)


def page() -> None:
    question_page(LOAD, "Reading the loads", figures, picture, options=lambda about: options(), beside=price_of_run)


def figures(result: LoadResult) -> list[Figure]:
    """The five figures, of the load that is best: within the objectives, below the knee, or the only one."""
    row = result.row(result.best) if result.best else result.rows.iloc[-1 if result.knee is None else 0]
    of = f"Of the load {row['stage']}: {result.best_words or 'the one shown'}. "
    found = result.steady
    shown = found if found is not None and found.is_steady and found.stage == row["stage"] else None
    dollars = row["usd_per_m_output_tokens"]
    speed = Figure(
        "Tokens/s per chip", fmt.number(row["tokens_per_s_per_chip"]), of + "Output tokens by chips.", "derived"
    )
    if shown is not None and len(result.rows) == 1:
        speed = Figure(
            "Steady tokens/s",
            rate_with_margin(shown).removesuffix(" tokens/s"),
            of + LOAD.meaning("Steady part"),
            "derived",
        )
    return [
        Figure(
            "Requests/s answered",
            fmt.number(row["request_rate_per_s"]),
            of + LOAD.meaning("Answered per second"),
            "measured",
        ),
        Figure("Output tokens/s", fmt.number(row["output_tokens_per_s"]), of + "Over the whole load.", "measured"),
        speed,
        Figure(
            "Tokens/s of a user",
            fmt.number(row["tokens_per_s_per_user"]),
            of + LOAD.meaning("Tokens/s of a user"),
            "derived",
        ),
        Figure("p99 TTFT", fmt.duration(row["ttft_p99_s"]), of + "Time to first token.", "measured")
        if dollars != dollars
        else Figure(
            "Per million tokens", fmt.usd(dollars), of + LOAD.meaning("Dollars per million output tokens"), "derived"
        ),
    ]


def picture(told: Told[LoadResult]) -> None:
    """One of the views, further runs beside this one, and the loads to take away."""
    result = told.result
    views = VIEWS if len(result.rows) > 1 else {"steady": VIEWS["steady"], "latency": VIEWS["latency"]}
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="bottom"):
        view = switch("View", "view", views, next(iter(views)))
        metric = switch("Latency", "metric", draw.METRICS, "ttft") if view == "latency" else "ttft"
        others = further_runs(told) if view != "steady" else []
    words, figure = _view(view, metric, result, [(told.run.manifest.name, result), *others])
    st.markdown(words)
    if figure is not None:
        chart(figure, f"load {view} {metric}", f"{told.name}-{view}", told.verdict)
    table = result.rows
    with st.expander(f"Evidence: {fmt.count(len(table), 'load')}", icon=":material/table:"):
        evidence(table, table["basis"].eq("requests").any())
        if figure is not None:
            told.downloads(table, figure, VIEWS[view], view)


def evidence(table: pd.DataFrame, single: bool) -> None:
    """The loads; a row that is picked is the one in which a steady part is looked for."""

    def picked() -> None:
        if rows := st.session_state["loads"].selection.rows:
            choose("stage", str(table["stage"].iloc[rows[0]]))

    draw_table(
        table[[c for c in SHOWN if table[c].notna().any()]],
        hide_index=True,
        on_select=picked,
        selection_mode="single-row",
        key="loads",
    )
    if single and len(table) > 1:
        st.caption("Pick a row to look for the steady part in that load. The files hold more columns.")


def _view(view: str, metric: str, result: LoadResult, runs: list[draw.Named]) -> tuple[str, object]:
    if view == "latency":
        return f"**{draw.METRICS[metric]} over load.** Hollow marks are beyond the knee.", draw.latency(runs, metric)
    if view == "pareto":
        lacking = "" if result.chips else " Chips unknown: per chip cannot be told. Ingest with `--chips`."
        return (
            "**Fast for one, or many at once.** Lines join the loads that no other beats both ways; the label is "
            f"the load.{lacking}"
        ), draw.pareto(runs)
    if view == "cost":
        figure = draw.cost(runs)
        if figure is None:
            return "**No cost yet.** It needs the chips (ingest with `--chips`) and a price: set it above.", None
        return "**What a token costs, by how long its reader waits.** Lines join the loads that no other beats.", figure
    if view == "steady":
        told = result.steady
        figure = steady(result)
        if told is None or figure is None:
            return f"**No steady part is told.** {md(result.steady_words)}", figure
        part = "is steady" if told.is_steady else "should be steady, and is not"
        return (
            f"**From ramp-up to drain.** The green part {part}; the grey edge is where its start may lie. "
            f"{md(result.steady_words)}"
        ), figure
    ideal = "a server that keeps up" if result.axis == "rate" else "growth in proportion"
    return f"**Asked and answered.** The dotted line is {ideal}; hollow marks are beyond the knee.", draw.curve(runs)


if __name__ == "__main__":
    page()
