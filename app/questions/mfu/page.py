"""MFU: which share of the chips' peak became useful maths, in which steps, and by whose count?"""

import contextlib

import streamlit as st

from analyzers.flops.mfu import JOB, SHAPES, MfuResult
from app.components.chart import chart
from app.components.figures_row import Figure
from app.components.question_page import Told, question_page
from app.components.text import md
from app.figures.long_series import said_of
from app.questions.asking import ask
from app.questions.findings import FINDINGS
from app.questions.findings.ladder import gap, ladder
from app.questions.flops import FLOPS
from app.questions.mfu import MFU
from app.questions.mfu.assumptions import asked, assumptions, choice, convention
from app.questions.mfu.figure import conventions, over_steps, utilisations
from app.questions.mfu.words import TITLES
from app.workspace import Workspace
from errors import QuestionError
from errors import format as fmt
from runs.run import Run


def page() -> None:
    question_page(
        MFU,
        "Reading the steps",
        figures,
        body,
        options=lambda about: asked(),
        otherwise=lambda run, given: assumptions({}),
    )


def body(told: Told[MfuResult]) -> None:
    """MFU over the steps, what a token costs, and the steps to take away."""
    picture(told)
    counts(told.run, told.result, told.place)
    rest(told)
    rows = told.result.rows
    told.evidence(rows, f"{fmt.count(len(rows), 'step')} as taken", lambda: over_steps(told.result), "MFU")


def figures(result: MfuResult) -> list[Figure]:
    """The five figures, with their definitions."""
    peak = result.peaks.source or "a peak that is not known"
    return [
        Figure(
            "MFU",
            fmt.share(result.mfu),
            f"{MFU.meaning('MFU')} Here: {peak}.",
            "derived",
            result.mfu,
            "more",
            alike=result.convention,
        ),
        Figure("HFU", fmt.share(result.hfu), MFU.meaning("HFU"), result.hfu_basis or "unattributed"),
        Figure(
            "EMFU", fmt.share(result.emfu), MFU.meaning("EMFU"), "unattributed" if result.emfu is None else "derived"
        ),
        Figure(
            "Best step",
            fmt.share(result.best),
            MFU.meaning("Best step"),
            "derived",
            result.best,
            "more",
            alike=result.convention,
        ),
        Figure(
            "Average",
            fmt.share(result.average),
            MFU.meaning("Average MFU"),
            "derived",
            result.average,
            "more",
            alike=result.convention,
        ),
    ]


def picture(told: Told[MfuResult]) -> None:
    """MFU over the steps by the chosen convention."""
    result = told.result
    with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center"):
        offered = offered_conventions(result)
        if len(offered) > 1:
            convention({c: TITLES[c][0].upper() + TITLES[c][1:] for c in offered}, default_convention(result))
        assumptions(
            {
                "model": result.model,
                "chip": result.peaks.chip and result.peaks.chip.name,
                "seq": result.seq and str(result.seq),
                "precision": result.peaks.precision,
            }
        )
    figure = over_steps(result)
    said = f"**MFU of each step**, FLOPs by {md(words(result.convention))}. Hollow steps are not in the figures."
    st.markdown(f"{said} {md(said_of(figure))}")
    chart(figure, "mfu steps", told.name, told.verdict)


def words(convention: str) -> str:
    if convention == SHAPES:
        return "the shapes that ran"
    return "the job's own count" if convention == JOB else f"the {TITLES[convention]} convention"


def default_convention(result: MfuResult) -> str:
    return next((c for c in ("causal", JOB) if c in result.conventions), SHAPES)


def offered_conventions(result: MfuResult) -> list[str]:
    """Those that can be computed and differ for this model, and the one chosen."""
    twins = {name for c in result.fingerprint.conventions for name in c.same}
    useful = [c for c in result.conventions if c not in twins and c not in ("6n_total", "hardware_full_remat", "lora")]
    return useful if result.convention in useful else [*useful, result.convention]


def counts(run: Run, result: MfuResult, place: Workspace) -> None:
    """Utilisations side by side, and what a token costs by each convention with the fingerprint of what was printed."""
    left, right = st.columns([2, 3])
    with left:
        st.markdown("**Side by side**: the same work against the native peak, with recomputation, and against BF16.")
        chart(utilisations(result), "utilisations", f"{run.manifest.name}-utilisation", "MFU, HFU and EMFU as bars.")
    with right:
        if result.flops is None:
            st.markdown(
                "**What a token costs** follows from the model and its sequence length. Choose them, and the "
                "count behind the printed numbers is identified."
            )
            choice("model", result.model, "cost")
            choice("seq", result.seq and str(result.seq), "cost")
            return
        found = result.fingerprint
        said = found.verdict.replace("These numbers", "The printed numbers")
        said_more = f"{md(said)} {by_their_count(result)}"
        st.markdown(f"**What a token costs** in sequences of {result.seq:,} tokens. {said_more}")
        for wrong in found.contradictions:
            st.markdown(f":orange-badge[:material/warning: contradiction] {md(wrong)}")
        subject = {k: v for k, v in st.query_params.items() if k in ("model", "seq")}
        all_of = ask(FLOPS, run, {"seq": str(result.seq), **subject}, place.registry).counts
        figure = conventions([c for c in all_of if c.convention != "6n_total"], found.printed_flops_per_token)
        chart(figure, "conventions", f"{run.manifest.name}-flops", said or "FLOPs per token by convention.")


def rest(told: Told[MfuResult]) -> None:
    """How far it is from what could be, and where the chip time between went: the same as on the Overview."""
    with contextlib.suppress(QuestionError):
        with st.spinner("Asking every question about this run"):
            found = ask(FINDINGS, told.run, {}, told.place.registry)
        ladder(told.run, found, told.place, told.name)
        st.markdown("**Where the rest of the chip time went**, by account of the ledger, the largest first.")
        gap(found.ledger, told.run, found.floor, MFU.name)


def by_their_count(result: MfuResult) -> str:
    """What MFU reads by the printed count, where that is another than the one shown."""
    printed, shown = result.fingerprint.printed_flops_per_token, result.flops_per_token
    if not printed or not shown or not result.mfu or abs(printed / shown - 1) <= result.fingerprint.tolerance:
        return ""
    return f"By that count MFU reads {fmt.share(result.mfu * printed / shown)} instead of {fmt.share(result.mfu)}."


if __name__ == "__main__":
    page()
