"""What is to be known of a run's files (what could not be read, what was left out), on each of its pages until a person
has put it away."""

import functools

import streamlit as st

from app.components.held import held
from app.components.text import md, prose
from app.identity.may import changing
from app.workspace import workspace
from errors import ChipledgerError
from errors import format as fmt
from runs.database import At
from runs.dismissals import Dismissals
from runs.run import Run

SHOWN = 20  # of thousands; all of them stand under "How this is computed"


@functools.cache
def _dismissals(registry: At) -> Dismissals:
    return Dismissals(registry)


def things_to_know(run: Run) -> None:
    """One line that opens; nothing where there is nothing to know, or where it was dismissed."""
    warnings = run.manifest.warnings
    try:
        if not warnings or _dismissals(workspace().registry.at).dismissed(run.run_id, warnings):
            return
    except ChipledgerError:
        pass  # a registry that cannot be read hides nothing
    title = f"{fmt.count(len(warnings), 'thing')} to know about these files"
    with st.expander(title, icon=":material/info:", key=f"things_{run.run_id}"):
        st.markdown("\n".join(f"- {prose(warning)}" for warning in warnings[:SHOWN]))
        if len(warnings) > SHOWN:
            st.caption(f"and {len(warnings) - SHOWN:,} more, all of them under “How this is computed” below.")
        st.button("Dismiss", key="things_dismissed", on_click=_dismiss, args=(run,), **held(HELP))


HELP = "Not shown on this run's pages any more; it stays under “How this is computed”."


@changing("dismiss warnings")
def _put_away(run: Run) -> None:
    _dismissals(workspace().registry.at).dismiss(run.run_id, run.manifest.warnings)


def _dismiss(run: Run) -> None:
    try:
        _put_away(run)
    except ChipledgerError as e:
        st.toast(md(e))
