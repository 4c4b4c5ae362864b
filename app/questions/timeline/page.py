"""The run's timeline: every event on every host and device, drawn from what the screen can show of it."""

import pandas as pd
import streamlit as st

from analyzers.timeline import TimelineResult
from app.components.columns import draw_table
from app.components.figures_row import Figure
from app.components.question_page import Told, question_page
from app.questions.timeline import TIMELINE
from app.questions.timeline.perfetto import perfetto
from app.questions.timeline.words import table
from app.timeline.beside import second
from app.timeline.second_choice import choice
from app.timeline.viewer import viewer
from app.timeline.waiting import waiting
from errors import format as fmt


def page() -> None:
    if not waiting():
        question_page(TIMELINE, "Placing every event in its row", figures, body, beside=choice)


def figures(result: TimelineResult) -> list[Figure]:
    """How much there is to see."""
    of = result.timeline
    seconds = of.tick_ps / 1e12
    return [
        Figure("Events", f"{of.stored:,}", TIMELINE.meaning("Events"), "measured"),
        Figure("Lanes", f"{len(of.lanes):,}", TIMELINE.meaning("Lane"), "measured"),
        Figure("Rows", f"{of.tiles.rows:,}", TIMELINE.meaning("Row"), "derived"),
        Figure("Span", fmt.duration(of.span * seconds), "From the first event to the end of the last.", "measured"),
    ]


def body(told: Told[TimelineResult]) -> None:
    """The picture, and its lanes as rows."""
    st.markdown(
        "**What happened when?** Turn the wheel to look closer, drag to move, click an event for what it is. Strips "
        "say in which account of the ledger each instant is entered; an event has the colour of the work that it is."
    )
    viewer(told.run, told.result.timeline, second(told.run, told.result.timeline, told.place))
    perfetto(told.run, told.result.timeline)
    told_rows = table(told.result)
    rows = pd.DataFrame(told_rows.rows, columns=["group", *told_rows.head[1:]])
    with st.expander(f"Evidence: {fmt.count(len(rows), 'lane')}", icon=":material/table:"):
        draw_table(rows)


if __name__ == "__main__":
    page()
