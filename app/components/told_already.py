"""What a run tells already, with the way to each page: where it was just added, and where its ledger tells little."""

import streamlit as st

from app.components.text import md
from app.questions.told_first import told_first
from app.workspace import Workspace
from runs.run import Run


def told_already(run: Run, place: Workspace, without: str = "") -> None:
    """A verdict each; nothing where no question has one. `without`: the question that the page told of itself."""
    with st.spinner("Asking what the files tell already"):
        told = told_first(run, place.registry, without)
    if not told:
        return
    with st.container(border=True, key="told already"):
        for question, said in told:
            words, way = st.columns([5, 1], vertical_alignment="center")
            words.markdown(f"**{question.title}.** {md(said)}")
            way.page_link(
                question.file, label=f"Open {question.title}", icon=question.icon, query_params={"run": run.run_id}
            )
