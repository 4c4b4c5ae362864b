"""Prefix cache: what share of prompts it finds, what caches of other sizes would find, and what that saves."""

from typing import Any

import streamlit as st

from analyzers.serving.prefix_cache import ENOUGH, OPTIONS, PrefixResult
from app import format as fmt
from app.components.chart import chart
from app.components.current import current_run
from app.components.downloads import downloads
from app.components.figures_row import Figure, figures_row
from app.components.header import header
from app.components.howto import howto
from app.components.notice import notice
from app.components.option import by_name, control
from app.components.text import md
from app.components.verdict import verdict
from app.figures.base import standalone
from app.questions.asking import ask
from app.questions.prefix_cache import PREFIX_CACHE
from app.questions.prefix_cache.figure import by_size, over_time, reuse, tenants
from app.questions.prefix_cache.words import size_words
from app.questions.prefix_cache.words import verdict as prefix_verdict
from app.workspace import Workspace
from catalog.models import models
from errors import ChipledgerError, QuestionError
from runs.run import Run

CACHES = {"replica": "Each replica its own", "shared": "One for all"}
_OPTIONS = by_name(OPTIONS)


def page() -> None:
    run, extras, place = current_run()
    header(run, extras)
    view(run, place)


@st.fragment
def view(run: Run, place: Workspace) -> None:
    """Everything below the head: a choice draws it again and leaves the head alone."""
    top = st.container()
    try:
        with st.spinner("Replaying the prompts"):
            given = controls(run, ask(PREFIX_CACHE, run, {}, place.registry))
            result = ask(PREFIX_CACHE, run, given, place.registry)
    except QuestionError as e:
        st.info(md(e), icon=":material/info:")
        howto(run, PREFIX_CACHE.terms, (), PREFIX_CACHE.inputs)
        return
    except ChipledgerError as e:
        notice(e)
        howto(run, PREFIX_CACHE.terms, (), PREFIX_CACHE.inputs)
        return
    with top:
        verdict(prefix_verdict(result))
        figures_row(figures(result))
    pictures(run, result, given)
    howto(run, PREFIX_CACHE.terms, result.notes, PREFIX_CACHE.inputs)


def controls(run: Run, base: PrefixResult) -> dict[str, Any]:
    """Model (for bytes), size of the cache, and whether replicas share one. Returns the options that differ."""
    if not base.replayed:
        return {}
    given: dict[str, Any] = {}
    row = st.columns([2, 1, 2], vertical_alignment="bottom")
    with row[0]:
        if base.block_tokens is not None:
            own = "Sizes in blocks" if base.block_bytes is None else "The run's own model"
            now = control(_OPTIONS["model"], texts={m: m for m in models()}, unset=own, label="Blocks of")
            given |= {"model": now} if now else {}
    with row[1]:
        default = base.size_blocks or base.enough_blocks or 1
        size = control(_OPTIONS["blocks"], default, step=max(default // 10, 1), always=True)
        given |= {} if size == base.size_blocks else {"blocks": size}
    if base.caches > 1:
        with row[2]:
            choice = control(_OPTIONS["caches"], "replica", texts=CACHES, buttons=True)
            given |= {} if choice == "replica" else {"caches": choice}
    return given


def figures(result: PrefixResult) -> list[Figure]:
    """Measured, attainable, at the asked size, the size that is enough, and what is saved."""
    shown = []
    if result.measured.hit_rate is not None:
        shown.append(
            Figure(
                "The engine found",
                fmt.share(result.measured.hit_rate),
                PREFIX_CACHE.meaning("The engine's own"),
                "measured",
            )
        )
    if result.replayed:
        shown += [
            Figure(
                "Without end", fmt.share(result.infinite_hit_rate, 4), PREFIX_CACHE.meaning("Without end"), "derived"
            ),
            Figure(
                "At this size",
                fmt.share(result.hit_rate),
                f"{size_words(result, result.size_blocks)}, {result.size_source}. {PREFIX_CACHE.meaning('By size')}",
                "modelled",
            ),
            Figure(
                "Enough",
                size_words(result, result.enough_blocks).split(" (")[0],
                f"The least size that finds {fmt.whole_share(ENOUGH)} of what a cache without end finds.",
                "modelled",
            ),
        ]
    saving = result.saved["measured"] or result.saved["size"]
    if saving and saving["flops_share"] is not None:
        basis = "derived" if result.saved["measured"] else "modelled"
        shown.append(
            Figure("Saved of reading prompts", fmt.share(saving["flops_share"]), PREFIX_CACHE.meaning("Saves"), basis)
        )
    return shown[:5]


def pictures(run: Run, result: PrefixResult, given: dict) -> None:
    """What each size finds, when blocks come again, by tenant, the engine's own over time, and the rows."""
    name, words, drawn = f"{run.manifest.name}-prefix", prefix_verdict(result), None
    if result.replayed and result.infinite_hit_rate:
        st.markdown("**What a cache of each size would find.** The same requests, replayed at every size at once.")
        drawn = by_size(result)
        chart(drawn, f"size {name} {given}", f"{name}-size", words)
    if bars := reuse(result):
        st.markdown("**When blocks come again.** A cache has to keep a block that long to find it.")
        chart(bars, f"reuse {name} {given}", f"{name}-reuse", words)
    if bars := tenants(result):
        st.markdown(
            "**By tenant.** "
            + (
                "Found at this size; hatched, if any: what a larger cache would find."
                if result.size_blocks
                else "Found by a cache without end."
            )
        )
        chart(bars, f"tenants {name} {given}", f"{name}-tenants", words)
    if line := over_time(result):
        st.markdown("**What the engine found, over time.**")
        drawn = drawn or line
        chart(line, f"time {name} {given}", f"{name}-time", words)
    if len(result.first_tokens):
        st.markdown(
            "**Time to first token, waiting included, by what was found of the prompt.** "
            + "; ".join(
                f"{row.found}: median {fmt.duration(row.ttft_s)} ({row.requests:,} requests, prompts of "
                f"{row.prompt_tokens:,.0f} tokens)"
                for row in result.first_tokens.itertuples()
            )
            + "."
        )
    rows = result.by_size if result.replayed else result.measured.over_time
    with st.expander(f"Evidence: {fmt.count(len(rows), 'row')}", icon=":material/table:"):
        st.dataframe(rows.head(5000), hide_index=True)
        if drawn is not None:
            answer = f"/api/runs/{run.run_id}/show/prefix" + "".join(
                f"{'&' if i else '?'}{k}={v}" for i, (k, v) in enumerate(given.items())
            )
            downloads(rows, name, answer, lambda: standalone(drawn, f"{run.manifest.name}: prefix cache", name))


if __name__ == "__main__":
    page()
