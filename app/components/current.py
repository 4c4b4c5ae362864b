"""Which run a page is about, and what the address says of the rest: everything a page depends on is in its URL."""

from collections.abc import Sequence

import streamlit as st

from app.components.by_itself import remember
from app.components.live import address
from app.components.notice import notice
from app.pages.library import LIBRARY
from app.workspace import Workspace, workspace
from errors import ChipledgerError
from runs.registry import Extras
from runs.run import Run


def open_workspace() -> Workspace:
    """The store; where it cannot be used, the page says so and ends."""
    try:
        return workspace()
    except ChipledgerError as e:
        notice(e, library=False)
        st.stop()


def current_run() -> tuple[Run, Extras, Workspace]:
    """The run named in the address, else the one last looked at. Without one the page says so and ends."""
    place = open_workspace()
    wanted = st.query_params.get("run") or st.session_state.get("last_run")
    if not wanted:
        st.info("No run is chosen yet. Open one in the library.", icon=":material/info:")
        st.page_link(LIBRARY.file, label="All runs", icon=":material/arrow_back:")
        st.stop()
    try:
        run = place.store.find(wanted)
        run.manifest  # noqa: B018 - read here, so that a manifest that cannot be read is told as such
        extras = place.registry.extras(run.run_id)
    except ChipledgerError as e:
        st.session_state.pop("last_run", None)
        notice(e)
        st.stop()
    named = address(run, place)
    st.session_state["last_run"] = named
    if st.query_params.get("run") != named:
        st.query_params["run"] = named
    return run, extras, place


def chosen(name: str, allowed: Sequence[str], default: str) -> str:
    """A choice from the address; what is not allowed there counts as the default."""
    value = st.query_params.get(name, default)
    return value if value in allowed else default


def choose(name: str, value: str, default: str = "") -> None:
    """Write a choice into the address; the default is left out to keep it short."""
    if value == default:
        st.query_params.pop(name, None)
    else:
        st.query_params[name] = value
    remember(name, None if value == default else value)


def switch(label: str, name: str, options: dict[str, str], default: str) -> str:
    """A row of buttons of which one is on; `options` is {value in the address: text on the button}."""
    key = f"switch_{name}"

    def changed() -> None:
        choose(name, st.session_state[key] or default, default)

    st.segmented_control(
        label,
        list(options),
        default=chosen(name, list(options), default),
        format_func=options.__getitem__,
        key=key,
        on_change=changed,
        label_visibility="collapsed",
        required=True,
    )
    return chosen(name, list(options), default)
