"""One compiled step, or two side by side: verdict, figures, pictures, evidence."""

import pandas as pd
import streamlit as st

from analyzers.compiled.compiled import CompiledResult
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.downloads import downloads
from app.components.figures_row import Figure, figures_row
from app.components.howto import howto
from app.components.text import md
from app.components.verdict import beyond, verdict
from app.figures.base import standalone
from app.questions.compiled import COMPILED
from app.questions.compiled import figure as figures
from app.questions.compiled.words import PARTS, comparison, padding_sentence
from app.questions.compiled.words import verdict as compiled_verdict
from errors import format as fmt
from runs.run import Run

WORTH_DRAWING = 1.005  # padded over logical bytes of the arguments


def told(shown: list[tuple[Run, CompiledResult]]) -> None:
    """One answer, or two side by side with what differs."""
    names = _names([run for run, _ in shown])
    named = [(name, result) for name, (_, result) in zip(names, shown, strict=True)]
    for name, result in named:
        if len(named) > 1:
            st.markdown(f"**{md(name)}**")
        verdict(compiled_verdict(result))
        if result.rule:
            st.caption(md(result.rule))
        if result.outcome != "compiled" and result.message:
            st.code(result.message, language=None, wrap_lines=True)
    if len(named) == 1:
        figures_row(five(named[0][1]))
    else:
        st.markdown("**What differs**")
        draw_table(pd.DataFrame(comparison(*named)))
    pictures(named, shown[0][0])
    for _, result in named:
        beyond(compiled_verdict(result))
    notes = dict.fromkeys(note for _, result in named for note in result.notes)
    howto(shown[0][0], COMPILED.terms, tuple(notes), ())


def five(r: CompiledResult) -> list[Figure]:
    """The five figures of a compiled step."""
    need, limit = r.bytes_per_chip["peak"], r.bytes_per_chip["limit"]
    bound = f" Most of it: {PARTS[r.floor.bound_by]}." if r.floor else ""
    return [
        Figure("Memory", f"{fmt.size(need)} of {fmt.size(limit)}", COMPILED.meaning("Bytes"), "modelled"),
        Figure("FLOPs per chip", fmt.flops(r.flops_per_chip), COMPILED.meaning("FLOPs"), "derived"),
        Figure("Estimated cycles", fmt.number(r.estimated_cycles), COMPILED.meaning("Estimated cycles"), "modelled"),
        Figure(
            "Least time of a step",
            fmt.duration(r.floor and r.floor.seconds),
            COMPILED.meaning("Least time") + bound,
            "modelled",
        ),
        Figure("MFU at best", fmt.share(r.mfu_bound), COMPILED.meaning("MFU at best"), "modelled"),
    ]


def pictures(named: list[figures.Named], run: Run) -> None:
    """Memory, bounds, collectives; padding and cycles for each run."""
    whole = figures.memory(named)
    both = (
        ("Does it fit? Bytes of one chip by kind against what the compiler lets a program use.", whole, "memory"),
        (
            "How fast at best? Together these are the least time of a step: operations one after another at peak.",
            figures.least(named),
            "bounds",
        ),
        ("Which collectives, over which mesh axes, and how many bytes?", figures.collectives(named), "collectives"),
    )
    for text, figure, key in both:
        if figure is not None:
            st.markdown(f"**{text.partition('? ')[0]}?** {text.partition('? ')[2]}" if "? " in text else f"**{text}**")
            chart(figure, key, f"{run.manifest.name}-{key}", text)
    for column, (name, result) in zip(st.columns(len(named)), named, strict=True):
        with column:
            each(name if len(named) > 1 else "", result)
    rows = named[0][1].ops
    with st.expander(f"Evidence: {fmt.count(len(rows), 'operation')}", icon=":material/table:"):
        draw_table(rows.head(2000))
        downloads(
            rows,
            f"{run.manifest.name}-operations",
            f"/api/runs/{run.run_id}/show/compiled",
            lambda: standalone(whole, run.manifest.name, "memory"),
        )


def each(name: str, result: CompiledResult) -> None:
    """What is drawn for each run by itself: the padding of its arguments and its costliest operations."""
    of = f" ({md(name)})" if name else ""
    if both := result.argument_bytes:
        st.markdown(f"**Where is memory padded?**{of} {padding_sentence(*both)}")
        if both[1] > both[0] * WORTH_DRAWING and (drawn := figures.arguments(result)):
            chart(drawn, f"arguments {name}", "arguments", "Arguments by padding.")
    if tax := result.matmul_tax:
        st.markdown(
            f"Matrix products on an MXU of {tax.mxu} × {tax.mxu}: padding adds {fmt.share(tax.tax, 2)} to their FLOPs, "
            f"{fmt.share(tax.tax_optimistic, 2)} with operands swapped where that is better."
        )
    if drawn := figures.cycles(result):
        st.markdown(f"**Which operations cost most?**{of} By the compiler's own estimate of cycles.")
        chart(drawn, f"cycles {name}", "cycles", "Operations by estimated cycles.")


def _names(runs: list[Run]) -> list[str]:
    names = [r.manifest.name for r in runs]
    return names if len(set(names)) == len(names) else [f"{n} {r.run_id[:6]}" for n, r in zip(names, runs, strict=True)]
