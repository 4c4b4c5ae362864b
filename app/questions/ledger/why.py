"""From an account to the page that explains it, and back."""

import streamlit as st

from app import theme
from app.pages.all import pages_of
from app.questions import QUESTIONS
from runs.run import Run


def why(run: Run, path: tuple[str, ...]) -> None:
    """A link to the page that explains the account at this path; nothing where none does."""
    account = theme.known(path)
    for page in QUESTIONS:
        if account in page.explains and page in pages_of(run):
            told, icon = page.explains[account], ":material/arrow_forward:"
            st.page_link(page.file, label=told, icon=icon, query_params={"run": run.run_id})
