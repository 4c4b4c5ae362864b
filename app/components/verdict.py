"""The verdict, before any figure."""

import streamlit as st

from app.components.text import md

NO_BREAK = "\u00a0"  # a number and its per cent sign stay on one line


def verdict(text: str) -> None:
    """One plain statement, larger than the rest."""
    st.markdown(f"##### {md(text.replace(' %', NO_BREAK + '%'))}")
