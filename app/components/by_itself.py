"""What is drawn again by itself, at the address as it was chosen last.

A browser asks for it with the address that it knows. Of a choice made a moment before it may not have heard yet, and
the page would be drawn, and stay, as it was before that choice.
"""

import contextlib
from collections.abc import Callable, Iterator
from functools import wraps
from typing import ParamSpec

import streamlit as st

CHOSEN = "chosen"  # in the session: what was chosen by name, None where it was taken back to the default
P = ParamSpec("P")


def by_itself(draw: Callable[P, None], every_s: float | None) -> Callable[P, None]:
    """A part of a page that is drawn again by itself; `every_s` None: only when something in it is used."""
    with_the_page = [True]

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> None:
        if with_the_page:
            with_the_page.clear()
        else:
            _as_chosen()
        draw(*args, **kwargs)

    return st.fragment(drawn, run_every=every_s)


def remember(name: str, value: str | None) -> None:
    st.session_state.setdefault(CHOSEN, {})[name] = value


@contextlib.contextmanager
def whole_page() -> Iterator[None]:
    """Draw all of a page within it. What its address then says holds, as after a step back in the browser."""
    try:
        yield
    finally:
        for name in st.session_state.get(CHOSEN, {}):
            remember(name, st.query_params.get(name))


def _as_chosen() -> None:
    for name, value in st.session_state.get(CHOSEN, {}).items():
        if st.query_params.get(name) == value:
            continue
        if value is None:
            del st.query_params[name]
        else:
            st.query_params[name] = value
