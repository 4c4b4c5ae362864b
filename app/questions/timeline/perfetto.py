"""The timeline as a file to take to Perfetto: what of it, and how much that is, before it is asked for."""

from urllib.parse import urlencode

import streamlit as st

from analyzers.timeline import Timeline
from app.components.text import md
from app.timeline.perfetto.bundled import EXTRA, folder, opening
from app.timeline.perfetto.choosing import choose, places, ticks
from app.timeline.perfetto.options import END, FROM, LANES, START, TO
from errors import QuestionError
from errors import format as fmt
from errors.options import parse_options
from runs.run import Run

MOST_CHOICES = 200
HELP = (
    "A file of the chosen lanes and seconds that Perfetto opens: every event, with its account as category. What "
    "overlaps stands on tracks of its own, so that nothing is dropped."
)


def perfetto(run: Run, of: Timeline) -> None:
    """A button that opens the choice; the file is written when it is taken."""
    with st.popover("Perfetto", icon=":material/download:"):
        st.caption(HELP)
        left, right = st.columns(2)
        last = f"{of.span * of.tick_ps / 1e12:.6g}"
        wanted = {
            FROM.name: left.text_input(FROM.title, placeholder="0", key="perfetto from") or None,
            TO.name: right.text_input(TO.title, placeholder=last, key="perfetto to") or None,
        }
        lanes = st.multiselect("Lanes", places(of)[:MOST_CHOICES], placeholder="all", key="perfetto lanes")
        try:
            given = ticks(of, parse_options((FROM, TO), wanted)) | {LANES.name: lanes}
            chosen = choose(of, given)
        except QuestionError as e:
            st.warning(md(e))
            return
        st.markdown(f"**{fmt.count(chosen.events, 'event')}** in {fmt.count(len(chosen.rows), 'row')}.")
        asked = [(START.name, str(chosen.start)), (END.name, str(chosen.end)), *((LANES.name, lane) for lane in lanes)]
        if folder() is not None:
            st.link_button("Open in Perfetto", opening(run.run_id, asked), icon=":material/open_in_new:")
        st.link_button("Download for Perfetto", address(run.run_id, asked), icon=":material/download:")
        if folder() is None:
            st.caption(f"It opens here, without the internet, where the server has the extra `{EXTRA}`.")


def address(run_id: str, asked: list[tuple[str, str]]) -> str:
    """Where the file is given out."""
    return f"/api/runs/{run_id}/timeline/perfetto?{urlencode(asked)}"
