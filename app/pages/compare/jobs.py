"""Two jobs beside each other: the body of the page Compare where they are no served runs."""

import pandas as pd
import streamlit as st

from analyzers.difference import DifferenceResult
from analyzers.difference.terms import TERMS
from app.comparing import job_words as words
from app.comparing.both_timelines import both_timelines
from app.comparing.sides import both_compared, compare_jobs
from app.components.answering import answering
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.downloads import downloads
from app.components.figures_row import Figure, figures_row
from app.components.howto import howto
from app.components.report_buttons import OF_TWO, report_buttons
from app.components.text import md
from app.components.verdict import beyond, verdict
from app.pages.compare import jobs_figure as draw
from app.questions.forms import unit_of
from app.workspace import Workspace
from errors import format as fmt
from runs.run import Run

INPUTS = ("steps", "captures")
NOTHING = "The two tell nothing that differs."


def two_jobs(run: Run, other: Run, place: Workspace) -> None:
    """Verdict, figures, what changed by account, steps, what differs, operations."""
    with answering("Comparing step by step", lambda: howto(run, TERMS, (), INPUTS)):
        result = compare_jobs(run, other, place)
    said = words.verdict(result)
    verdict(said)
    figures_row(figures(result))
    name = f"{run.manifest.name}-and-{other.manifest.name}"
    figure = draw.by_account(result)
    if figure is not None:
        st.markdown(f"**What takes more of a step, and what less?** {draw.pale(result)}")
        chart(figure, "accounts", name, said)
    if both := both_compared(run, other):
        st.markdown("**How long did settled steps take?** The curve further left is the quicker.")
        chart(draw.both_steps(*both, (result.a, result.b)), "steps", f"{name}-steps", said)
    both_timelines(run, other)
    evidence(result, run, other, name)
    report_buttons(f"/api/compare/report?a={run.run_id}&b={other.run_id}", OF_TWO)
    beyond(said)
    howto(run, TERMS, result.notes, INPUTS)


def figures(result: DifferenceResult) -> list[Figure]:
    """Step of both, change with its range, what could be seen, how much is explained."""
    step, shown = result.step, list[Figure]()
    if step is not None:
        shown.append(
            Figure("Step: A · B", f"{fmt.duration(step.a)} · {fmt.duration(step.b)}", "Settled steps.", "derived")
        )
        between = (
            step.why[:1].upper() + step.why[1:] + "."
            if step.low is None or step.high is None
            else f"Between {words.signed(step.low)} and {words.signed(step.high)}."
        )
        shown.append(Figure("Change of a step", words.signed(step.change), between, "derived"))
        if step.detectable is not None and step.low != step.high:
            seen = "The least change that 95 of 100 such pairs would show."
            shown.append(Figure("Could be seen", fmt.share(step.detectable, 2), seen, "derived"))
    if result.explained_share is not None and result.told:
        shown.append(Figure("Explained", fmt.share(result.explained_share, 2), "By accounts of the ledger.", "derived"))
    return shown


def evidence(result: DifferenceResult, run: Run, other: Run, name: str) -> None:
    """What differs, accounts, all chip time a kept step, operations: each to take away."""
    st.markdown(f"**What is known to differ** between {md(result.a)} (A) and {md(result.b)} (B).")
    if result.differs:
        rows = [{"setting": d.name, "A": _cell(d.name, d.a), "B": _cell(d.name, d.b)} for d in result.differs]
        draw_table(pd.DataFrame(rows))
    else:
        st.caption(NOTHING)
    address = f"/api/compare?a={run.run_id}&b={other.run_id}"
    ledger = pd.DataFrame([c.to_dict() for c in result.ledger])
    whole = pd.DataFrame([c.to_dict() for c in result.whole])
    ops = pd.DataFrame([o.to_dict() for o in result.ops])
    for title, rows, key in (
        ("accounts of a step and chip, seconds", ledger, "accounts"),
        ("all chip time a kept step, chip-seconds", whole, "whole"),
        ("operations of a step and device, seconds", ops, "operations"),
    ):
        if len(rows):
            with st.expander(f"Evidence: {title} ({len(rows):,})", icon=":material/table:"):
                draw_table(rows)
                downloads(rows, f"{name}-{key}", address, None)


def _cell(name: str, value: object) -> str:
    """With the unit that the name tells."""
    if isinstance(value, float):
        shown = {"FLOP/s": fmt.flops_rate, "FLOPs": fmt.flops}.get(unit_of(name.removesuffix("_per_step")), fmt.number)
        return shown(value)
    return fmt.NO_VALUE if value is None else f"{value:,}" if isinstance(value, int) else str(value)
