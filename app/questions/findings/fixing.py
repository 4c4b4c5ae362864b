"""Mending on paper: how much of each finding, the ledger beside the one that it would be, and promises to keep."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from analyzers.findings import FindingsResult
from analyzers.findings.base import Finding
from app.components.chart import chart
from app.components.held import held
from app.components.question_page import Told
from app.components.text import md
from app.pages.promises import PROMISES
from app.questions.findings.figure import on_paper
from errors import format as fmt
from simulators.mending import mended


@dataclass(frozen=True)
class Mended:
    """A finding, and which part of it is mended (0 to 1)."""

    finding: Finding
    part: float = 1.0


def how_much(number: int) -> float:
    """Asked on the card of a finding that is ticked."""
    return (
        st.slider(
            "How much of it",
            0,
            100,
            100,
            5,
            format="%d %%",
            key=f"part {number}",
            help="Half: every stall half as long, a rank half as late, a save half as often.",
        )
        / 100
    )


def mend(told: Told[FindingsResult], ticked: Sequence[Mended]) -> None:
    """The ledger beside the one that it would be, and a button to be held to it."""
    result, draws = told.result, dict[str, float]()
    for one in ticked:
        for name, amount in one.finding.draws.items():
            draws[name] = draws.get(name, 0.0) + one.part * amount
    after = mended(result.ledger, draws)
    saved = result.whole - after.chip_seconds
    usd = result.usd(saved)
    dollars = f" and {md(fmt.usd(usd))}" if usd is not None else ""
    then = after.amount("useful_maths") / after.chip_seconds if after.chip_seconds else 0.0
    now = result.useful_share or 0.0
    least = "at least " if result.useful_least else ""
    maths = (
        f" Useful maths would be {least}{fmt.share(then)} of the chip time in place of {fmt.share(now)}." if now else ""
    )
    st.markdown(
        f"**On paper**, modelled: the same steps in {fmt.share(saved / result.whole)} less chip time "
        f"({_band(result, ticked)}), {result.time(saved)}{dollars} less.{maths}"
    )
    chart(on_paper(result.ledger, after), "on paper", f"{told.name}-mended", "The ledger now and mended on paper.")
    _keep(told, ticked)


def _band(result: FindingsResult, ticked: Sequence[Mended]) -> str:
    low, high = (
        min(sum(one.part * getattr(one.finding.gain, end) for one in ticked), result.whole) for end in ("low", "high")
    )
    return f"{fmt.share(low / result.whole)} to {fmt.share(high / result.whole)}"


def _keep(told: Told[FindingsResult], ticked: Sequence[Mended]) -> None:
    """Promises of what is ticked."""
    from app import promises  # which asks questions, of which this is one

    button, hint = st.columns([2, 5], vertical_alignment="center")
    with hint:
        st.caption(
            f"The next run of {md(told.run.manifest.name)} is held against what is promised here: what it gave "
            "stands on its Overview and among the promises."
        )
    if not button.button("Keep this as a promise", icon=":material/handshake:", **held()):
        return
    for one in ticked:
        if one.part:
            promises.promise(told.run, told.result, [one.finding], told.place, one.part)
    st.toast("Kept. The next run of this job is held against it.", icon=":material/handshake:")
    st.rerun()


def receipts(told: Told[FindingsResult]) -> None:
    """What was promised of this run or by the run that it follows, and what was given."""
    from app import promises

    kept = promises.promises_about(told.run, told.place)
    if not kept:
        return
    with st.container(border=True):
        for one in kept:
            mine = one.before is not None and one.before.run_id == told.run.run_id
            whose = "Promised of this run" if mine else "Promised before this run"
            st.markdown(f":material/handshake: **{whose}**: {md(one.promise.title)} **{md(_first(one.sentence))}**")
        st.page_link(PROMISES.file, label="All promises, and how often they were right", icon=PROMISES.icon)


def _first(text: str) -> str:
    return text[:1].upper() + text[1:]
