"""Keys of the dashboard: `g` and a letter lead to a page, `/` to the search, `[` and `]` to the run before and after,
`?` tells them all. Never while something is written."""

from pathlib import Path

import streamlit as st

from app.components.browser import component
from app.groups import in_order
from app.library.rows import NEWEST, found_ids
from app.menu import Page
from app.pages.all import every_page
from app.workspace import Workspace, workspace
from errors import ChipledgerError

SEARCH = "Search"  # label of the library's search
LISTED = "listed"  # in the session: search and order of the list that was drawn last
STEPS = {"previous": -1, "next": 1}
_keys = component("chipledger_keys", Path(__file__).parent / "keys")


def keys(here: Page) -> None:
    """Listen. Leads on where a key was pressed that leads somewhere. `here`: the page that is shown."""
    leads = {page.name: page for page in sorted(every_page(), key=_order) if page.key}
    pages = [{"key": page.key, "name": name, "title": page.title} for name, page in leads.items()]
    told = _keys(key="keys", data={"pages": pages, "search": SEARCH}, on_go_change=lambda: None)
    run = st.query_params.get("run") or st.session_state.get("last_run")
    if told.go in leads:
        page = leads[told.go]
        st.switch_page(page.file, query_params={"run": run} if page.about and run else {})
    elif told.go in STEPS and here.about and run and (other := beside(run, STEPS[told.go])):
        st.switch_page(here.file, query_params={"run": other})


def _order(page: Page) -> tuple[bool, int]:
    """As a person looks for it: the pages of the top bar, then those of a run in the order of its menu."""
    return bool(page.about), in_order(page.name)


def beside(run: str, step: int) -> str | None:
    """The run so many places further in the list as it was last searched and sorted here, else in the store; None at
    either end, and of one that is not there."""
    place = workspace()
    try:
        mine = place.store.find(run).run_id
        ids = next(
            (listed for listed in (_listed(place), [r.run_id for r in place.store.look().runs]) if mine in listed), []
        )
    except ChipledgerError:
        return None
    at = ids.index(mine) + step if ids else -1
    if not 0 <= at < len(ids):
        return None
    live = place.store.live.current(ids[at])
    return live.address if live else ids[at]


def _listed(place: Workspace) -> list[str]:
    """The runs that the library's last search finds now, in its order; of one that cannot be, none."""
    query, sort = st.session_state.get(LISTED, ("", NEWEST))
    try:
        return found_ids(place, query, sort=sort, unread=True)
    except ChipledgerError:
        return []
