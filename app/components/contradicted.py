"""What was said of a run and does not agree with its files: told on each of its pages, with the way to mend it."""

import contextlib

import streamlit as st

from app.components.text import md
from app.facts.contradictions import Contradiction, contradictions
from app.pages.facts import FACTS
from app.workspace import workspace
from errors import ChipledgerError
from runs.run import Run


def contradicted(run: Run) -> None:
    """The first contradiction, and how many more there are; nothing where there is none."""
    with contextlib.suppress(ChipledgerError):  # who asks of a damaged run or registry is told elsewhere
        first, *others = contradictions(run, workspace().registry) or (None,)
        if first is None:
            return
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            line(first)
            more = f"Mend it, and {len(others):,} more" if others else "Mend it"
            st.page_link(FACTS.file, label=more, query_params={"run": run.run_id})


def line(one: Contradiction) -> None:
    """One contradiction, in one line."""
    st.markdown(f":orange-badge[:material/warning: contradiction] {md(one.sentence)}", width="content")
