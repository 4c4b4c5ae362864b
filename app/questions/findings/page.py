"""The first page of a run: what is wrong, what it costs, what to do, and where the chip time went."""

import contextlib
from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from analyzers.findings import FindingsResult
from analyzers.findings.base import Finding
from app import theme
from app.components.chart import chart
from app.components.figures_row import Figure
from app.components.notes import notes_button, notes_shown
from app.components.on_timeline import on_timeline
from app.components.price import price_of_run
from app.components.question_page import Told, question_page
from app.components.report_buttons import report_buttons
from app.components.text import md
from app.components.told_already import told_already
from app.pages.all import pages_of
from app.questions.asking import ask
from app.questions.base import Question
from app.questions.findings import FINDINGS, words
from app.questions.findings.fixing import Mended, how_much, mend, receipts
from app.questions.findings.ladder import gap, ladder
from app.questions.hangs import HANGS
from app.questions.ledger.figures import basis_of, time_held
from app.questions.ledger.icicle import icicle
from app.questions.memory import MEMORY
from app.timeline.places import place_of_finding
from app.words import sentence
from app.workspace import Workspace, workspace
from catalog.cures import EFFORTS, WRONGS
from errors import ChipledgerError
from errors import format as fmt
from runs.run import Run


def page() -> None:
    question_page(
        FINDINGS, "Asking every question about this run", figures, overview, beside=_beside, otherwise=_elsewhere
    )


def _beside(run: Run, place: Workspace) -> None:
    with st.container(horizontal=True, horizontal_alignment="right"):
        notes_button(run, place)
        price_of_run(run, place)
        report_buttons(f"/api/runs/{run.run_id}/report")


def _elsewhere(run: Run, _: Mapping[str, Any]) -> None:
    """What a run says that tells of no chip time: dumps of a job that hangs, a snapshot of memory."""
    notes_shown(run, workspace())
    for page in (HANGS, MEMORY):
        _told_of(page, run)


def _told_of(page: Question[Any], run: Run) -> None:
    """The verdict of a question, with the way to its page; nothing where it has none about the run."""
    if not page.tells_of(run):
        return
    with contextlib.suppress(ChipledgerError):
        said = page.verdict(ask(page, run, {}, workspace().registry))
        st.markdown(f"**{page.title}.** {md(said)}")
        st.page_link(page.file, label=page.asks, icon=page.icon, query_params={"run": run.run_id})


def figures(result: FindingsResult) -> list[Figure]:
    """What mending all of them gives back, the cost of the run, and how much of it can be told."""
    back = result.joint[-1] / result.whole if result.joint and result.whole else 0.0
    shown = [
        Figure(
            "Given back if mended",
            fmt.share(back) if back else "not known" if result.findings else "nothing found",
            f"By all findings below together. {FINDINGS.meaning('joint')} {FINDINGS.meaning('gain')}",
            theme.weakest(f.basis for f in result.findings if f.gain) or "derived",
        )
    ]
    if result.ledger.usd is not None and result.ledger.chips_known:
        shown.append(Figure("Cost", fmt.usd(result.ledger.usd), "Chip-hours held times their price.", "derived"))
    else:
        held = "Chips held times how long. A price above turns it into dollars."
        shown.append(time_held(result.ledger, held))
    kept, useful, told = (FINDINGS.meaning(n) for n in ("kept_share", "useful_share", "told_share"))
    least = "at least " if result.useful_least else ""
    for name, label, share, meaning in (
        ("served" if result.serving else "productive", "Kept or served", fmt.share(result.kept_share), kept),
        ("useful_maths", "Useful maths", f"{least}{fmt.share(result.useful_share)}", useful),
    ):
        shown.append(Figure(label, share, meaning, basis_of(result.ledger.find(name), "derived")))
    shown.append(Figure("Can be told", fmt.share(result.told_share), told, "derived"))
    return shown


def overview(told: Told[FindingsResult]) -> None:
    """The findings, the run with those mended that are ticked, and its ledger."""
    result = told.result
    notes_shown(told.run, told.place)
    if result.blind and not result.findings:
        told_already(told.run, told.place)
    receipts(told)
    ticked = _cards(told)
    if ticked:
        mend(told, ticked)
    st.markdown("**Where the chip time went**")
    figure = icicle(result.ledger, "")
    chart(figure, "ledger", told.name, "The ledger of the run, as an icicle.")
    gap(result.ledger, told.run, result.floor)
    _link(told, "ledger", "Open the ledger, account by account")
    ladder(told.run, result, told.place, told.name)
    _rest(result)
    told.downloads(_rows(result), None, "Findings")


def _cards(told: Told[FindingsResult]) -> list[Mended]:
    """A card each; of those whose box is ticked how much is mended."""
    result, ticked = told.result, list[Mended]()
    for number, finding in enumerate(result.findings, 1):
        with st.container(border=True):
            what, worth = st.columns([5, 2], gap="large")
            with what:
                st.markdown(f"**{number}. {md(WRONGS[finding.cause].title)}**")
                st.markdown(md(finding.title))
                st.markdown(f":material/build: {md(result.cure(finding))}")
                shown = md(sentence(words.evidence(finding, result.ledger.chips_known)))
                st.caption(f"{shown} Takes {md(EFFORTS[WRONGS[finding.cause].effort])}.")
                _link(told, finding.question, "See the evidence")
                on_timeline(told.run, place_of_finding(finding))
            with worth:
                st.metric("Gives back", *_worth(result, finding), delta_color="off", delta_arrow="off")
                st.caption(_sure(result, finding))
                if finding.gain and st.checkbox("Mend it on paper", key=f"mend {number}"):
                    ticked.append(Mended(finding, how_much(number)))
    if result.beyond:
        st.caption(f"{fmt.count(result.beyond, 'more finding')} of less: `chipledger show {told.run.run_id} findings`.")
    return ticked


def _worth(result: FindingsResult, finding: Finding) -> tuple[str, str | None]:
    """The large number of a card, and the small one below it."""
    if finding.gain is None:
        return "not known", None
    usd = result.usd(finding.likely)
    amount = result.time(finding.likely)
    return fmt.share(finding.likely / result.whole), f"{fmt.usd(usd)}, {amount}" if usd is not None else amount


def _sure(result: FindingsResult, finding: Finding) -> str:
    mark = theme.mark(finding.basis)
    sure = f"{fmt.whole_share(finding.confidence)} sure of the cause"
    if finding.gain is None:
        return sure
    if finding.gain.low == finding.gain.high:
        return f"{mark.glyph} {mark.word}; {sure}"
    low, high = (fmt.share(s / result.whole) for s in (finding.gain.low, finding.gain.high))
    return f"{low} to {high} {mark.glyph}; {sure}"


def _link(told: Told[FindingsResult], question: str, label: str) -> None:
    """To the page that shows it, where this run has that page."""
    for page in pages_of(told.run):
        if page.name == question:
            about = f"{label}: {page.title}" if question != "ledger" else label
            st.page_link(page.file, label=about, icon=page.icon, query_params={"run": told.run.run_id})


def _rest(result: FindingsResult) -> None:
    """What was looked for in vain, and what could not be told."""
    if result.not_told:
        with st.expander(f"What this run cannot tell ({len(result.not_told)})", icon=":material/visibility_off:"):
            for gap in result.not_told:
                names = ", ".join(WRONGS[c].title.lower() for c in gap.causes if c in WRONGS)
                add = f" Add {gap.add}." if gap.add else ""
                st.markdown(f"- {md(names[:1].upper() + names[1:])}: {md(gap.why)}.{md(add)}")
    if result.ruled_out or result.explained:
        with st.expander(f"Looked for and ruled out ({len(result.ruled_out)})", icon=":material/check_circle:"):
            for out in result.ruled_out:
                st.markdown(f"- {md(WRONGS[out.cause].title)}: {md(out.why)}.")
            for other in result.explained:
                st.markdown(f"- {md(WRONGS[other.cause].title)}: explained by a finding above.")


def _rows(result: FindingsResult) -> pd.DataFrame:
    """One row a finding, for who takes them away."""
    return pd.DataFrame(
        [
            {
                "cause": f.cause,
                "finding": f.title,
                "gain_chip_seconds": f.likely if f.gain else None,
                "gain_low_chip_seconds": f.gain.low if f.gain else None,
                "gain_high_chip_seconds": f.gain.high if f.gain else None,
                "gain_usd": result.usd(f.likely) if f.gain else None,
                "confidence": f.confidence,
                "question": f.question,
                "cure": result.cure(f),
            }
            for f in result.findings
        ]
    )


if __name__ == "__main__":
    page()
