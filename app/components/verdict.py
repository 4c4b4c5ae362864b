"""The verdict, before any figure."""

import streamlit as st

from app.components.text import md


def verdict(text: str) -> None:
    """One plain statement, larger than the rest."""
    st.markdown(f"##### {md(text)}")
