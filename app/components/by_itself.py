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

    return fragment(drawn, every_s)


def fragment(draw: Callable[P, None], every_s: float | None = None) -> Callable[P, None]:
    """A part of a page that is drawn again without the rest: when something in it is used, and every so often.

    It has a place of its own. Where it is drawn again right after the whole page, before the browser has heard of
    that, its first drawing is never sent. What comes next in the same place would then stand behind nothing, which the
    browser refuses: the page would be dead.
    """
    again = st.fragment(draw, run_every=every_s)

    @wraps(draw)
    def placed(*args: P.args, **kwargs: P.kwargs) -> None:
        with st.container():
            again(*args, **kwargs)

    return placed


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
