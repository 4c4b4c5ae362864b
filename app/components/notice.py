"""What a page says when it cannot answer: what is wrong, and a way on."""

import contextlib
from collections.abc import Iterator

import streamlit as st

from app.components.text import prose
from app.pages.library import LIBRARY
from errors import ChipledgerError, InputError


def notice(error: ChipledgerError, library: bool = True) -> None:
    """The error's one line as a notice, with a link back to the library."""
    st.warning(prose(error), icon=":material/info:")
    if library:
        st.page_link(LIBRARY.file, label="All runs", icon=":material/arrow_back:")


@contextlib.contextmanager
def noticed() -> Iterator[None]:
    """Draw within it. What can no longer be read ends it with a notice: a run may be removed at any instant."""
    try:
        yield
    except InputError as e:
        notice(e)
