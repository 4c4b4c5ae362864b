"""The run's traffic: how bursty is it, how long are prompts and answers, and would a Poisson model do?"""

import streamlit as st

from analyzers.serving.traffic import WorkloadResult
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.current import switch
from app.components.figures_row import Figure
from app.components.model_picker import About
from app.components.option import by_name, control
from app.components.question_page import Told, question_page
from app.questions.traffic import TRAFFIC
from app.questions.traffic import figure as draw
from app.questions.traffic.words import SHAPES, span, tokens
from errors import format as fmt
from runs.tables import frame

VIEWS = {
    "rate": "Rate",
    "windows": "Bursts by window",
    "lengths": "Lengths",
    "mix": "Mix",
    "tokens": "Tokens",
    "flight": "In flight",
}
SENTENCES = {
    "rate": "Requests as they came. What stands out of the grey band, a Poisson process of that mean does not show.",
    "windows": "How much counts vary, by the length of the window they are counted in: 1 is a Poisson process. A line "
    "that climbs means that the rate itself drifts, and that an average over minutes hides queues.",
    "lengths": "How long prompts and answers are. Long tails of prompts delay the first tokens of others; those of "
    "answers hold their places in the KV cache.",
    "mix": "Which requests are made of what: those to the right are work of the prompt phase, those above of decoding.",
    "tokens": "Tokens asked for over time: what the engine has to read and to write, as requests come.",
    "flight": "Requests in the system, from their arrival to their last token: the batch and its queue.",
}
UNBANDED = "Requests as they came."  # where no band can be drawn
_OPTIONS = by_name(TRAFFIC.options)


def page() -> None:
    question_page(TRAFFIC, "Reading the traffic", figures, picture, options=_options, apart=True)


def _options(about: About) -> dict[str, str]:
    """The load chosen, where there are several, and other thresholds: all from the address."""
    requests = frame(about.its_run.tables, "requests", ["stage"])
    names = sorted(requests["stage"].dropna().astype(str).unique())
    given = {name: st.query_params[name] for name in ("heavy_prompt", "heavy_output") if name in st.query_params}
    if len(names) < 2:
        return given
    texts = {name: name for name in names}
    now = control(_OPTIONS["stage"], texts=texts, unset="all loads, one after another", key="workload stage", width=420)
    return {**given, "stage": now} if now else given


def figures(result: WorkloadResult) -> list[Figure]:
    """The five figures of the traffic."""
    told = (
        f"{fmt.count(result.requests, 'request')} in {fmt.duration(result.duration_s)}; they come "
        f"{SHAPES[result.shape]}."
    )
    peak = result.window(10.0) or (result.windows[0] if result.windows else None)
    label = "Peak by mean" if peak is None else f"Peak by mean, {span(peak.window_s)}"
    return [
        Figure("Requests/s", fmt.number(result.request_rate_per_s), told, "measured"),
        Figure(
            "CV of the gaps",
            fmt.number(result.gaps and result.gaps.cv, 4),
            TRAFFIC.meaning("CV of the gaps"),
            "derived",
        ),
        Figure(label, fmt.number(peak and peak.peak_to_mean), TRAFFIC.meaning("Peak by mean"), "derived"),
        Figure("Prompt share", fmt.share(result.prompt_share), TRAFFIC.meaning("Prompt share of traffic"), "derived"),
        Figure("Tokens, median", _pair(result), "Of a prompt, and of an answer.", "measured"),
    ]


def _pair(result: WorkloadResult) -> str:
    prompt, output = (tokens(s and s["p50"]) for s in (result.prompt_tokens, result.output_tokens))
    return f"{prompt} in, {output} out"


def picture(told: Told[WorkloadResult]) -> None:
    """The figure chosen, and the rows to take away."""
    result = told.result
    drawn = {
        "rate": draw.arrivals,
        "windows": draw.dispersion,
        "lengths": draw.lengths,
        "mix": draw.joint,
        "tokens": draw.tokens,
        "flight": draw.flight,
    }
    made = {view: figure for view, make in drawn.items() if (figure := make(result)) is not None}
    if made:
        view = switch("View", "view", {v: VIEWS[v] for v in made}, next(iter(made)))
        st.markdown(SENTENCES[view] if view != "rate" or result.rate_chance is not None else UNBANDED)
        chart(made[view], f"traffic {view}", f"{told.name}-{view}", told.verdict)
    rows = draw.evidence(result)
    if not len(rows) and not len(result.tenants):
        return
    title = fmt.count(len(rows), "window length")
    title += f", {fmt.count(len(result.tenants), 'tenant')}" if len(result.tenants) else ""
    with st.expander(f"Evidence: {title}", icon=":material/table:"):
        draw_table(rows)
        if len(result.tenants):
            st.markdown("**By tenant**, most requests first: means of tokens, CV of each one's own gaps.")
            draw_table(result.tenants)
        if made:
            told.downloads(rows, made[view], "traffic", view)


if __name__ == "__main__":
    page()
