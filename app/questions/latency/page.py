"""The run's latency: how long did requests wait, for what, and at which throughput?"""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from analyzers.serving.latency import ServingResult
from app.components.figures_row import Figure
from app.components.load_choice import load_choice
from app.components.model_picker import About
from app.components.question_page import Told, question_page
from app.questions.latency import LATENCY
from app.questions.latency.view import explore
from app.questions.latency.words import between
from errors import format as fmt


def page() -> None:
    question_page(LATENCY, "Reading requests", figures, explore, options=_options, answered=_loads)


def _options(about: About) -> dict[str, str]:
    """One load, from the address."""
    return {"stage": stage} if (stage := st.query_params.get("stage")) else {}


def _loads(told: Told[ServingResult], head: DeltaGenerator) -> None:
    """The list of loads, in the head."""
    loads = told.result.loads
    together = all(load.served is not None and load.kept is None for load in loads)
    with head:
        load_choice(loads, "All requests together" if together else "The load with most output tokens/s")


def figures(result: ServingResult) -> list[Figure]:
    """First token, tokens after it, the whole, throughput, and what did not complete."""
    load, told = result.load, result.exposed

    def latency(metric: str, title: str, meaning: str) -> Figure:
        if load.statistic(metric, "p50") is None and told is not None and metric in told.latencies:
            low, high = (between(told.quantile(metric, which)) for which in ("p50", "p99"))
            mean = fmt.duration(told.latencies[metric].mean)
            return Figure(
                f"{title} p50 · p99",
                f"{low} · {high}",
                f"{meaning} Mean: {mean}. By the server's own "
                "histogram, whose buckets tell between what a quantile lies.",
                "measured",
            )
        middle = load.statistic(metric, "p50")
        low, high = fmt.duration(middle), fmt.duration(load.statistic(metric, "p99"))
        mean = fmt.duration(load.statistic(metric, "mean"))
        if (highest := load.statistic(metric, "p99.9")) is not None:
            mean += f", p99.9: {fmt.duration(highest)}"
        basis = load.basis.get(metric, "unattributed")
        said = f"{meaning} Mean: {mean}. Against a baseline: p50."
        return Figure(f"{title} p50 · p99", f"{low} · {high}", said, basis, middle, "less")

    sent = load.requests
    failed = fmt.share(load.failed / sent) if sent and load.failed is not None else fmt.NO_VALUE
    kept = (
        []
        if load.goodput_per_s is None
        else [
            Figure(
                "Requests/s within objectives",
                fmt.number(load.goodput_per_s),
                "Requests per second that kept the load tool's own objectives, as it printed it.",
                "measured",
            )
        ]
    )
    return [
        latency("ttft_s", "TTFT", LATENCY.meaning("TTFT")),
        latency("itl_s", "ITL", LATENCY.meaning("ITL"))
        if _gaps_alone(result)
        else latency("tpot_s", "TPOT", LATENCY.meaning("TPOT")),
        latency("e2e_s", "E2E", LATENCY.meaning("E2E")),
        Figure(
            "Output tokens/s",
            fmt.number(load.output_tokens_per_s),
            f"{LATENCY.meaning('Output tokens per second')} "
            f"Requests per second: {fmt.number(load.request_rate_per_s)}.",
            load.basis.get("output_tokens_per_s", "unattributed"),
        ),
        Figure(
            "Failed",
            failed,
            f"{fmt.count(load.failed, 'request')} of {sent or 0:,} sent. {LATENCY.meaning('Tokens lost')}",
            "measured",
        ),
        *kept,
    ]


def _gaps_alone(result: ServingResult) -> bool:
    """Whether a server's histogram tells the gaps between tokens and nothing the mean of a request's."""
    told = result.exposed.latencies if result.exposed else {}
    return "itl_s" in told and "tpot_s" not in told and result.load.statistic("tpot_s", "p50") is None


if __name__ == "__main__":
    page()
