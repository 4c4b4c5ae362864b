"""The way from a run's page to XProf's own tools."""

import streamlit as st

from app.serve.xprof import traces
from runs.run import Run

HELP = (
    "XProf's own pages for this run's profile, in a new tab. It starts in some seconds. Its charts are loaded from "
    "the internet; without it only its trace viewer is whole. Nothing of the run leaves this server."
)


def xprof_link(run: Run) -> None:
    """A button "Open in XProf" where the run has a profile."""
    if traces(run):
        st.link_button("Open in XProf", f"/xprof/{run.run_id}", help=HELP, icon=":material/open_in_new:")
