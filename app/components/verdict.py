"""The verdict, before any figure."""

import streamlit as st

from app.components.text import md
from app.words import rest_of


def verdict(text: str) -> None:
    """One plain statement, larger than the rest."""
    st.markdown(f"##### {md(text)}")


def beyond(text: str) -> None:
    """What a verdict has no room for, below the pictures."""
    if rest := rest_of(text):
        st.caption(md(" ".join(rest)))
