"""The way from a place that a page tells of to the run's timeline, looking at it."""

from collections.abc import Mapping

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.questions.timeline import TIMELINE
from app.timeline.places import can_show
from runs.run import Run

LABEL = "Show on the timeline"


def on_timeline(run: Run, place: Mapping[str, str], label: str = LABEL, where: DeltaGenerator | None = None) -> None:
    """A link to it (`place` by `places.place_of`); nothing where the run's timeline cannot show it."""
    if place and TIMELINE.tells_of(run) and can_show(run, place):
        given = {"run": run.run_id, **place}
        (where or st).page_link(TIMELINE.file, label=label, icon=TIMELINE.icon, query_params=given)
