"""Where a page asks its question: progress while it is answered, and what is shown where there is no answer."""

import contextlib
from collections.abc import Callable, Iterator

import streamlit as st

from app.components.notice import notice
from app.components.text import prose
from errors import ChipledgerError, QuestionError


@contextlib.contextmanager
def answering(doing: str, otherwise: Callable[[], None]) -> Iterator[None]:
    """Ask within it. Without an answer the page says why, shows `otherwise`, and ends.

    That a run lacks what would answer is no fault: it is told as information, with what would bring it.
    """
    try:
        with st.spinner(doing):
            yield
        return
    except QuestionError as e:
        st.info(f"**No answer:** {prose(e)}", icon=":material/info:")
    except ChipledgerError as e:
        notice(e)
    otherwise()
    st.stop()
