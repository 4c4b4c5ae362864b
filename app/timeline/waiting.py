"""The page of a timeline that is being made: how far it is. It can be left, and be ended."""

import streamlit as st

from analyzers.timeline import large
from app.components.by_itself import by_itself
from app.components.current import current_run
from app.components.header import header
from app.components.text import md
from app.timeline.builds import Build, made
from runs.registry import Registry
from runs.run import Run

AT_ONCE_S = 0.7  # what is there sooner is not worth a page
EVERY_S = 1.0
LEAVE = (
    "This is done once for a run. You can leave the page: the timeline goes on being made, and is there for whoever "
    "comes next."
)


def waiting() -> bool:
    """Whether the page is drawn that waits for the timeline; else its answer, or why there is none, can be asked."""
    run, extras, place = current_run()
    if not large(run.tables):
        return False
    ended = f"timeline ended {run.run_id}"
    build = None if ended in st.session_state else made(run, place.registry)
    if ended not in st.session_state and (build is None or build.wait(AT_ONCE_S)):
        return False
    with header(run, extras):
        st.container()
    if build is None:
        st.info("The making of this timeline was ended, and nothing of it was kept.", icon=":material/info:")
        st.button("Make it", type="primary", on_click=lambda: st.session_state.pop(ended, None))
    else:
        st.markdown("**The timeline of this run is being made.**")
        by_itself(lambda: _draw(build, ended), EVERY_S)()
    return True


def still_made(run: Run, registry: Registry) -> bool:
    """Whether the timeline of a second run is being made, or was ended, which is told where this is called; once it is
    there the page is drawn anew."""
    ended = f"timeline ended {run.run_id}"
    if ended in st.session_state:
        st.info("The making of the second run's timeline was ended.", icon=":material/info:")
        st.button("Make it", on_click=lambda: st.session_state.pop(ended, None))
        return True
    build = made(run, registry) if large(run.tables) else None
    if build is None or build.wait(AT_ONCE_S):
        return False
    st.markdown("**The timeline of the second run is being made.**")
    by_itself(lambda: _draw(build, ended), EVERY_S)()
    return True


def _draw(build: Build, ended: str) -> None:
    if build.wait(0):
        if build.ended:
            st.session_state[ended] = True
        st.rerun()
    st.progress(build.share, text=md(build.words))
    st.caption(LEAVE)
    if st.button("End it", icon=":material/stop_circle:", help="Nothing of it is kept."):
        build.end()
        st.session_state[ended] = True
        st.rerun()
