"""The way from a place that a page tells of to the run's timeline, looking at it."""

from collections.abc import Mapping

import streamlit as st

from app.questions.timeline import TIMELINE
from app.timeline.places import shown_of
from runs.run import Run

LABEL = "Show on the timeline"


def on_timeline(run: Run, place: Mapping[str, str], label: str = LABEL) -> None:
    """A link to it (`place` by `places.place_of`); nothing where the run's timeline cannot show it."""
    shown = shown_of(run, place) if place and TIMELINE.tells_of(run) else {}
    if shown:
        st.page_link(TIMELINE.file, label=label, icon=TIMELINE.icon, query_params={"run": run.run_id, **shown})
