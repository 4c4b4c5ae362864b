"""The viewer on a page: a canvas that asks for what it shows."""

import hashlib
from pathlib import Path

import streamlit as st

from analyzers.timeline import Timeline
from analyzers.timeline.stored import makers
from app.components.browser import component
from app.components.text import md
from app.timeline.beside import Second
from app.timeline.places import PLACE, TICKS, resolved
from errors import QuestionError
from runs.run import Run

VERSION = 2  # of how marks are packed: another one is asked for anew
_viewer = component("chipledger_timeline", Path(__file__).parent / "timeline")


def viewer(run: Run, of: Timeline, beside: Second | None = None) -> None:
    """The timeline of a run. The address has where it looks: `from`, `to` and `at`, in ticks, or a place by PLACE,
    which becomes ticks here. `beside`: a second run below it."""
    _placed(run, of)
    below = beside and beside.to_dict(run, kept_by(beside.run))
    _viewer(key=f"timeline {run.run_id}", data={"run": run.run_id, "written": kept_by(run), "beside": below})


def _placed(run: Run, of: Timeline) -> None:
    """Put a place into ticks. What is no place of this run is told in a sentence, and the whole run is shown."""
    given = {o.name: st.query_params[o.name] for o in PLACE if o.name in st.query_params}
    if not given or any(name in st.query_params for name in TICKS):
        return
    try:
        found = resolved(of, run.tables, given)
    except QuestionError as e:
        st.warning(md(e), icon=":material/info:")
        return
    kept = {name: value for name, value in st.query_params.to_dict().items() if name not in given}
    st.query_params.from_dict({**kept, **found})


def kept_by(run: Run) -> str:
    """What marks may be kept by for ever: the run as it was written, what people said of it, how this version makes
    timelines and packs marks."""
    told = (run.run_id, run.written.created_ns, run.said.mark, makers(), VERSION)
    return hashlib.blake2b(repr(told).encode(), digest_size=8).hexdigest()
