"""The engine of a serving run: what did it run, queue and keep over time, and what limited it?"""

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from analyzers.serving.engine import ALL, OPTIONS, EngineResult
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.current import switch
from app.components.figures_row import Figure
from app.components.model_picker import About
from app.components.option import by_name, control
from app.components.question_page import Told, question_page
from app.questions.engine import ENGINE
from app.questions.engine import figure as draw
from app.questions.engine.words import one_moment, whole
from app.questions.engine.words import table as engine_table
from errors import format as fmt

_OPTIONS = by_name(OPTIONS)
VIEWS = {"timeline": "Timeline", "shares": "Mix and hits", "batch": "Batch size", "iterations": "Iterations"}


def page() -> None:
    question_page(ENGINE, "Reading what the engine said", figures, picture, options=_options, answered=_replicas)


def _options(about: About) -> dict[str, str]:
    """One replica, from the address."""
    return {} if (name := st.query_params.get("replica", ALL)) == ALL else {"replica": name}


def _replicas(told: Told[EngineResult], head: DeltaGenerator) -> None:
    """The list of replicas, where there are several."""
    if len(replicas := told.result.replicas) > 1:
        texts = {ALL: f"All {len(replicas)} replicas", **{r: r for r in replicas}}
        control(_OPTIONS["replica"], ALL, texts=texts, width=260)


def figures(result: EngineResult) -> list[Figure]:
    """The five figures: what ran, what waited, how full it was, what was thrown out, what was found again."""
    f = result.figures
    basis = "measured"
    last = Figure(
        "Prefix hits",
        fmt.share(f["prefix_hit_rate"]),
        "Prompt tokens found in the prefix cache, of those looked up.",
        basis,
        f["prefix_hit_rate"],
        "more",
    )
    if f["prefix_hit_rate"] is None and f["padded_share"] is not None:
        last = Figure(
            "Padding",
            fmt.share(f["padded_share"]),
            "Tokens that only fill up a compiled shape, of all computed.",
            basis,
        )
    return [
        Figure(
            "Running",
            fmt.number(f["running"]["mean"]),
            f"Requests, mean over time; at most {whole(f['running']['max'])}.",
            basis,
        ),
        Figure("Waiting", whole(f["waiting"]["max"]), "Requests that waited when the engine was read.", basis)
        if one_moment(result)
        else Figure(
            "Requests waited",
            fmt.share(f["waiting_share"]),
            f"Of the time; at most {whole(f['waiting']['max'])} at once.",
            basis,
            f["waiting_share"],
            "less",
        ),
        Figure(
            "KV cache, most",
            fmt.share(f["kv_usage"]["max"]),
            f"{ENGINE.meaning('KV cache in use')} Mean {fmt.share(f['kv_usage']['mean'])}.",
            basis,
        ),
        Figure(
            "Preemptions",
            whole(f["preemptions"]),
            "Requests put back into the queue after they had begun, for want of memory.",
            basis,
        ),
        last,
    ]


def picture(told: Told[EngineResult]) -> None:
    """One of the views, and the rows to take away; of one moment, in which nothing is drawn, what was said then."""
    result = told.result
    if one_moment(result):
        st.markdown("**What the engine said at that moment.** A second reading would tell of the time between.")
        said = engine_table(result)
        rows = [row for row in said.rows if row[1] != fmt.NO_VALUE]
        draw_table(pd.DataFrame(rows, columns=said.head))
        return
    views = {k: v for k, v in VIEWS.items() if k != "iterations" or len(result.drawn)}
    view = switch("View", "view", views, "timeline")
    words, figure, rows = _view(view, result)
    st.markdown(words)
    if figure is None:
        st.info("The input holds none of it.", icon=":material/info:")
        return
    name = f"{told.name}-{view}"
    chart(figure, f"engine {view} {result.replica}", name, told.verdict)
    told.evidence(rows, fmt.count(len(rows), "row"), figure, VIEWS[view], view)


def _view(view: str, result: EngineResult) -> tuple[str, object, pd.DataFrame]:
    if view == "shares":
        words = "**What the engine worked on.** High prompt share: it reads prompts more than it generates."
        return words, draw.shares(result), result.windows
    if view == "batch":
        return "**How many requests ran together**, as a share of the time.", draw.batch(result), result.batch
    if view == "iterations":
        words = "**What an iteration takes, by the tokens in it.** Where the line starts is paid by every iteration."
        return words, draw.iterations(result), result.drawn
    words = "**What held requests back, and when.** The strip names the limit; below it what ran."
    return words, draw.timeline(result), result.windows


if __name__ == "__main__":
    page()
