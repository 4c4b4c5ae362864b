"""Beside the search: what it can be narrowed to, searches that are kept, and the columns of the list."""

from collections.abc import Mapping

import streamlit as st

from app.components.ask_facts import WHO
from app.components.current import choose
from app.components.held import held
from app.components.notice import notice
from app.components.text import md
from app.identity.may import NotAllowed
from app.library import changes
from app.library.rows import NEWEST
from app.pages.library.shown import OFFERED, TIME, USUAL, chosen_columns, chosen_sort, title
from app.workspace import Workspace
from errors import ChipledgerError
from runs.shelf import Search

OFFERS = 8  # values of a field that are offered
COLUMNS_NOW = "columns"  # in the session: those chosen last, for who comes back by another address


def filters(facets: Mapping[str, Mapping[str, int]]) -> None:
    """The most frequent values of chip, kind, model, tag and group; a click narrows the search to one."""
    with st.popover("Filter", icon=":material/filter_alt:"):
        for name, values in facets.items():
            if not values:
                continue
            st.caption(name.capitalize())
            with st.container(horizontal=True, gap="small"):
                for value, many in list(values.items())[:OFFERS]:
                    label = f"{md(value if len(value) <= 40 else value[:39] + '…')} ({many:,})"
                    key = f"filter {name} {value}"
                    st.button(label, key=key, type="tertiary", on_click=_narrow, args=(term(name, value),))
        st.caption("Is")
        with st.container(horizontal=True, gap="small"):
            for state in ("starred", "noted", "live", "simulated", "damaged"):
                st.button(state, key=f"filter is {state}", type="tertiary", on_click=_narrow, args=(f"is:{state}",))


def term(name: str, value: str) -> str:
    """A value of a field as it stands in a search; quotes cannot stand in it, and are left out."""
    plain = value.replace('"', "")
    return f'{name}:"{plain}"' if any(c.isspace() or c == "," for c in plain) else f"{name}:{plain}"


def _narrow(added: str) -> None:
    query = st.query_params.get("q", "").strip()
    if added not in query:
        choose("q", f"{query} {added}".strip())


def saved(place: Workspace) -> None:
    """Searches that are kept, and a field to keep the one that stands here."""
    try:
        kept = changes.searches(place)
    except ChipledgerError as e:
        notice(e, library=False)
        return
    with st.popover("Saved", icon=":material/bookmark:"):
        for search in kept:
            name, away = st.columns([6, 1], vertical_alignment="center")
            told = md(search.name if len(search.name) <= 60 else search.name[:59] + "…")
            how = md(search.query) or "All runs"
            name.button(told, key=f"saved {search.name}", type="tertiary", help=how, on_click=_recall, args=(search,))
            gone = f"forget {search.name}"
            away.button("", key=gone, icon=":material/close:", type="tertiary", on_click=_forget, **held("Forget it"),
                        args=(place, search.name))  # fmt: skip
        with st.form("save search", border=False, clear_on_submit=True):
            name = st.text_input("Name for the search as it stands", key="search name", max_chars=200)
            keep = st.form_submit_button("Save this search", **held())
        if keep:
            _keep(place, name)


def _keep(place: Workspace, name: str) -> None:
    columns, sort = chosen_columns(), chosen_sort()
    try:
        changes.save_search(
            place,
            name,
            st.query_params.get("q", "").strip(),
            columns=[c for c in columns if c != TIME] if columns != USUAL else (),
            sort="" if sort == NEWEST else sort,
            who=st.session_state.get(WHO, ""),
        )
    except ChipledgerError as e:
        notice(e, library=False)
        return
    st.rerun(scope="fragment")


def _recall(search: Search) -> None:
    choose("q", search.query)
    choose("sort", search.sort)
    choose("columns", ",".join(c for c in search.columns if c in OFFERED))
    choose("view", "")


def _forget(place: Workspace, name: str) -> None:
    try:
        changes.delete_search(place, name)
    except NotAllowed as e:
        st.toast(md(e))
    except ChipledgerError:
        return  # somebody else did


def choose_columns() -> None:
    """Which columns are shown, in the address and kept while this window is open."""
    now = list(chosen_columns())
    if "columns" not in st.query_params and (before := st.session_state.get(COLUMNS_NOW)):
        choose("columns", before)
        now = list(chosen_columns())
    key = "columns of the list"
    if st.session_state.get(key) != now:
        st.session_state[key] = now

    def changed() -> None:
        asked = [c for c in OFFERED if c in st.session_state[key]]
        text = ",".join(asked)
        choose("columns", text, ",".join(USUAL))
        st.session_state[COLUMNS_NOW] = "" if text == ",".join(USUAL) else text

    with st.popover("Columns", icon=":material/view_column:"):
        st.pills(
            "Columns beside the name", OFFERED, selection_mode="multi", format_func=title, key=key, on_change=changed
        )
