"""The head of a page that is about no single run: its title, and the link to copy."""

import streamlit as st

from app.components.actions import copy_link
from app.components.current import open_workspace
from app.workspace import Workspace


def page_head(title: str) -> Workspace:
    """Draws it; returns the workspace that the page tells of."""
    st.set_page_config(page_title=f"{title} · Chipledger")
    left, right = st.columns([4, 1], vertical_alignment="center")
    left.subheader(title, anchor=False)
    with right.container(horizontal=True, horizontal_alignment="right"):
        copy_link()
    return open_workspace()
