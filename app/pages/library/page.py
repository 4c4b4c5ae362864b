"""The run library: every run in the store, to be searched, kept in order and added to."""

import streamlit as st

from app.components.by_itself import by_itself
from app.components.current import open_workspace
from app.components.live import LIVE_SECONDS, watch_live_runs
from app.components.notice import notice
from app.library.rows import Library
from app.library.table import table
from app.pages.facts.landing import landing
from app.pages.library.acting import ask_more
from app.pages.library.dialogs import closed
from app.pages.library.listing import Listed, elsewhere, listed
from app.pages.library.upload import upload
from app.pages.library.welcome import greet, teach
from errors import ChipledgerError, QuestionError

LOOK_AGAIN_SECONDS = 1.5


def page() -> None:
    place = open_workspace()
    closed()
    top = st.container()
    if added := upload():
        first, told = landing(added, place)
        st.switch_page(first.file, query_params=told)
    followed = watch_live_runs(place)
    try:
        shown = Listed(place)
        every, bundled = table(place).counts()
    except ChipledgerError as e:
        notice(e, library=False)
        return
    own = every - bundled
    with top:
        greet(place, [] if shown.hidden else [r for i in shown.demo if (r := place.store.get(i))], own)
    if not (own if shown.hidden else every) and not shown.in_bin:
        teach(offered=not shown.demo)
        with st.container(horizontal=True):
            elsewhere(shown)
        return
    first_found = _first(shown)
    pending = first_found is not None and any(row.pending for row in first_found.rows)
    again = LOOK_AGAIN_SECONDS if pending else LIVE_SECONDS if followed else None
    ask_more(place, lambda: [row.address for row in shown.found(None).rows])
    by_itself(listed, again)(shown, [first_found] if first_found else [], pending)


def _first(shown: Listed) -> Library | None:
    """What is found at first; None where the search cannot be, which the list says."""
    try:
        return shown.found()
    except QuestionError:
        return None


if __name__ == "__main__":
    page()
