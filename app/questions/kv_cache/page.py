"""KV cache: how many sequences fit beside the weights, what takes a chip's memory, and what would make room."""

import pandas as pd
import streamlit as st

from analyzers.serving.kv_cache import KvResult
from app import format as fmt
from app.components.chart import chart
from app.components.downloads import downloads
from app.components.figures_row import Figure, figures_row
from app.components.model_picker import About, answered, explained, model_or_run
from app.components.verdict import verdict
from app.figures.base import standalone
from app.questions.asking import ask
from app.questions.kv_cache import KV_CACHE
from app.questions.kv_cache.controls import controls
from app.questions.kv_cache.figure import by_length, memory, over_time
from app.questions.kv_cache.words import change_name, rows
from app.questions.kv_cache.words import verdict as kv_verdict


def page() -> None:
    view(model_or_run())


@st.fragment
def view(about: About) -> None:
    """Everything below the head: a choice draws it again and leaves the head alone."""
    top = st.container()
    own = {"model": about.model} if about.run and about.model else {}

    def compute() -> tuple[KvResult, dict[str, object]]:
        base = ask(KV_CACHE, about.subject, own, about.place.registry)
        given = own | controls(base, about.run is not None)
        return base if given == own else ask(KV_CACHE, about.subject, given, about.place.registry), given

    found = answered(about, compute, KV_CACHE.terms, KV_CACHE.inputs)
    if found is None:
        return
    result, given = found
    with top:
        verdict(kv_verdict(result))
        figures_row(figures(result))
    pictures(about, result, given)
    explained(about, KV_CACHE.terms, result.notes, KV_CACHE.inputs)


def figures(result: KvResult) -> list[Figure]:
    """Sequences, cache of a token, weights and caches of a chip, and how full it was."""
    shown = []
    if result.room is not None:
        shown = [
            Figure(
                "Sequences at a time", f"{result.max_sequences:,}", KV_CACHE.meaning("Sequences at a time"), "modelled"
            ),
            Figure(
                "Weights on a chip",
                fmt.size(result.room.chip_weights_bytes),
                "Weights of the model, shared by the chips of a group; what cannot be split is on each.",
                "modelled",
            ),
            Figure(
                "Free for caches",
                fmt.size(max(result.room.free_bytes, 0)),
                "Of one chip: memory x share for the engine, less weights and activations.",
                "modelled",
            ),
        ]
    if result.kv_bytes_per_token is not None:
        shown.insert(
            1,
            Figure(
                "Cache of a token", fmt.size(result.kv_bytes_per_token), KV_CACHE.meaning("Cache of a token"), "derived"
            ),
        )
    if result.measured.engine_tokens is not None:
        shown.append(
            Figure(
                "The engine's cache",
                f"{result.measured.engine_tokens:,} tokens",
                "Tokens that one engine found room for when it started, as it printed.",
                "measured",
            )
        )
    if result.measured.peak_usage is not None and len(shown) < 5:
        shown.append(
            Figure(
                "Fullest", fmt.share(result.measured.peak_usage), "The fullest sample of the cache in use.", "measured"
            )
        )
    return shown


def pictures(about: About, result: KvResult, given: dict) -> None:
    """One chip's memory, sequences against length, the cache over time, and the rows to take away."""
    name, drawn = f"{about.name}-kv", None
    if result.room is not None:
        st.markdown(
            "**What one chip holds.** As asked, and with the change that makes most room; hatched: the same on "
            "several chips, or of no use."
        )
        bars = {f"as asked: {result.max_sequences:,} fit": result.room}
        if result.changes and result.changes[0][2].max_sequences > (result.max_sequences or 0):
            what, _, found = result.changes[0]
            bars[f"{change_name(what, found).lower()}: {found.max_sequences:,}"] = found
        drawn = memory(bars)
        chart(drawn, f"memory {name} {given}", f"{name}-memory", kv_verdict(result))
        st.markdown("**How many fit, by length.** A step down: whole sequences only. Ringed: as asked.")
        chart(by_length(result.model, result.room), f"length {name} {given}", f"{name}-length", kv_verdict(result))
    if line := over_time(result):
        st.markdown("**How full it was.**")
        chart(line, f"time {name}", f"{name}-time", "Share of the cache in use over time.")
        drawn = drawn or line
    if result.page_rounding is not None and result.room is not None:
        st.markdown(
            f"Of the pages of this run's {fmt.count(result.requests, 'request')} at their end, "
            f"{fmt.share(result.page_rounding)} only fill up the last page."
        )
    with st.expander("Evidence: the arithmetic, line by line", icon=":material/table:"):
        table = pd.DataFrame(rows(result), columns=["figure", "value"])
        st.dataframe(table, hide_index=True)
        if drawn is not None:
            downloads(
                table, name, about.answer(KV_CACHE, given), lambda: standalone(drawn, f"{about.name}: KV cache", name)
            )


if __name__ == "__main__":
    page()
