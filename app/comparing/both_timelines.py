"""The way from a comparison of two runs to their timelines, one above the other."""

import streamlit as st

from app.questions.timeline import TIMELINE
from app.timeline.beside import WITH
from app.timeline.second_choice import timed
from runs.run import Run


def both_timelines(run: Run, other: Run) -> None:
    """A link; nothing where either has no timeline."""
    if timed(run) and timed(other):
        st.page_link(
            TIMELINE.file,
            label="Both on the timeline",
            icon=TIMELINE.icon,
            query_params={"run": run.run_id, WITH.name: other.run_id},
        )
