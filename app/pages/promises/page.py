"""Promises: what was said of mending a finding, what the later run gave, and how often that was right."""

import streamlit as st

from app.components.chart import chart
from app.components.current import open_workspace
from app.components.figures_row import Figure, figures_row
from app.components.text import md
from app.components.verdict import verdict
from app.pages.promises.figure import said_and_given
from app.promises import KEPT, Kept, outcomes, record, signed, standing
from app.questions.findings import FINDINGS
from catalog.cures import WRONGS
from errors import format as fmt

HOW = """chipledger promise RUN --keep all     # or a cause that `chipledger findings RUN` names
chipledger promise                    # what later runs gave"""


def page() -> None:
    st.set_page_config(page_title="Promises · Chipledger")
    st.subheader("Promises", anchor=False)
    place = open_workspace()
    with st.spinner("Holding later runs against what was said"):
        kept = outcomes(standing(place), place)
    done = record(kept)
    verdict(done.sentence)
    if not kept:
        st.markdown(
            "A finding says what mending it gives back. Tick it on a run's Overview and keep that as a promise: the "
            "next run of the same job is held against it, account by account."
        )
        st.code(HOW, language="bash")
        return
    figures_row(
        [
            Figure(
                "Within the band",
                _of(done.within, done.kept),
                "Gave between the low and the high that was said.",
                "derived",
            ),
            Figure(
                "Given over said",
                fmt.number(done.ratio),
                "The median over promises of which it can be told.",
                "derived",
            ),
            Figure("Waiting", f"{done.pending:,}", "No later run of the same job is in the store yet.", "measured"),
            Figure(
                "Cannot be told",
                f"{done.not_told:,}",
                "The later run does other work, or tells too little.",
                "measured",
            ),
        ]
    )
    if done.kept:
        st.markdown(
            "**Did they give what was said?** On the line, exactly that; the bars are the bands that were told."
        )
        chart(said_and_given(kept), "said and given", "promises", "What was said and what was given, a point each.")
    st.markdown("**Each promise**, the newest first.")
    for one in kept:
        card(one)


def card(one: Kept) -> None:
    """A promise, what came of it, and the two runs."""
    with st.container(border=True):
        what, worth = st.columns([5, 2], gap="large")
        said = one.promise
        with what:
            st.markdown(f"**{md(WRONGS[said.cause].title if said.cause in WRONGS else said.cause)}** in {md(said.job)}")
            st.markdown(md(said.title))
            st.caption(f"{md(one.sentence[:1].upper() + one.sentence[1:])} Promised {fmt.date(said.made_ns)}.")
        with worth:
            gave = one.receipt.gave if one.state == KEPT and one.receipt else None
            st.metric("Gave", "not known" if gave is None else signed(gave))
            st.caption(f"said {fmt.share(said.low_share)} to {fmt.share(said.high_share)}")
            with st.container(horizontal=True):
                for label, run in (("Before", one.before), ("After", one.later)):
                    if run is not None:
                        st.page_link(FINDINGS.file, label=label, icon=FINDINGS.icon, query_params={"run": run.run_id})


def _of(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}" if whole else "none yet"


if __name__ == "__main__":
    page()
