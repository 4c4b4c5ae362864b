"""Which run stands below the first: a list in the head of the timeline's page."""

import streamlit as st

from app.baselines import find_run
from app.questions.timeline import TIMELINE
from app.timeline.beside import AT_STEP, WITH
from app.words import short
from app.workspace import Workspace
from errors import ChipledgerError
from runs.run import Run

MOST = 500
NOBODY = ""
OF_SECOND = "b_"  # how names begin by which the address tells of the second run
KEY = "timeline second"


def timed(run: Run) -> bool:
    """Whether something of it has a place in time, as far as that is told without looking."""
    told = run.manifest.tables
    return TIMELINE.tells_of(run) and any(
        told.get(name) for name in ("op_events", "requests", "iterations", "lifecycle", "steps")
    )


def choice(run: Run, place: Workspace) -> None:
    """The list; what is chosen stands in the address as `with=`."""
    others = {r.run_id: r.manifest.name for r in place.store.runs() if r.run_id != run.run_id and timed(r)}
    listed = dict(list(others.items())[:MOST])
    now = _now(place)
    if now is not None and now.run_id != run.run_id:
        listed[now.run_id] = now.manifest.name
    if not listed:
        return
    chosen = now.run_id if now is not None and now.run_id in listed else NOBODY
    if st.session_state.get(KEY) != chosen:
        st.session_state[KEY] = chosen
    st.selectbox(
        "Second run below",
        [NOBODY, *listed],
        format_func=lambda one: short(listed[one], 60) if one else "No second run",
        key=KEY,
        width=260,
        label_visibility="collapsed",
        help="Its lanes stand below, at the same step; both are looked at together.",
        on_change=_changed,
    )


def _now(place: Workspace) -> Run | None:
    """As the address has it; what that cannot be is told beside the picture."""
    try:
        return find_run(place, wanted) if (wanted := st.query_params.get(WITH.name)) else None
    except ChipledgerError:
        return None


def _changed() -> None:
    """What was looked at in the run before is none of the next one's."""
    for name in list(st.query_params):
        if name.startswith(OF_SECOND) or name == AT_STEP.name:
            del st.query_params[name]
    if st.session_state[KEY]:
        st.query_params[WITH.name] = st.session_state[KEY]
    else:
        st.query_params.pop(WITH.name, None)
