"""Storage: how long a batch takes to read beside a step, who waits for what, and what would mend it."""

from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from app.components.actions import copy_link
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.current import open_workspace
from app.components.downloads import downloads
from app.components.figures_row import figures_row
from app.components.howto import terms_list
from app.components.notice import notice
from app.components.option import control
from app.components.text import md
from app.components.verdict import beyond, verdict
from app.figures.base import standalone
from app.pages.storage.figure import batches, readings
from app.pages.storage.form import OVER, asked, begin, controls
from app.pages.storage.view import evidence, figures, published_notes, published_rows
from app.whatif.storage.answers import StorageAnswer, find
from app.whatif.storage.cases import worked
from app.whatif.storage.wording import verdict as said
from errors import QuestionError
from simulators.storage.terms import TERMS

NAME = "storage"


def page() -> None:
    left, right = st.columns([4, 1], vertical_alignment="center")
    left.subheader("Storage", anchor=False)
    with right.container(horizontal=True, horizontal_alignment="right"):
        copy_link()
    st.caption("A batch, a store and a step in; who waits for what, and what would mend it, out. Modelled.")
    if begin():
        st.caption("An example: small files of an object store, whose latency and rate of a stream are published.")
    try:
        result = find(asked(), open_workspace())
    except QuestionError as e:
        notice(e, library=False)
        controls()
        return
    verdict(said(result))
    controls()
    figures_row(figures(result))
    if result.pipe is not None:
        show(result)
    beyond(said(result))
    cases()
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown("\n".join(f"- {md(note)}" for note in result.notes))
        terms_list(TERMS)


def show(result: StorageAnswer) -> None:
    """The picture over readers or over the size of files, and its rows with what each part alone takes."""
    assert result.pipe is not None
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    left.markdown(
        "**Who waits?** The band above a step (dashed) is what chips wait for their input; at hollow marks nobody "
        "does. The large mark is what is asked about."
    )
    with right:
        over = control(OVER, OVER.default, buttons=True)
    by_size = over == "file size"
    rows, now = (
        (result.by_file_bytes, result.pipe.file_bytes) if by_size else (result.by_readers, float(result.pipe.readers))
    )
    figure = batches(rows, "file_bytes" if by_size else "readers", result.step_s, now)
    chart(figure, "batches", NAME, said(result))
    with st.expander("Evidence: what each part takes, and what is needed", icon=":material/table:"):
        draw_table(evidence(result))
        drawn = pd.DataFrame(rows)
        draw_table(drawn)
        entered = {n: v for n, v in vars(result.asked).items() if v is not None}
        address = f"/api/whatif/storage?{urlencode(entered)}"
        downloads(drawn, NAME, address, lambda: standalone(figure, "Time per batch", NAME))


def cases() -> None:
    """Published readings, measured beside modelled."""
    with st.expander("Published readings beside the model", icon=":material/menu_book:"):
        st.markdown("\n".join(f"- {md(line)} {md(note)}" for line, note in published_notes()))
        chart(readings(worked()), "readings", NAME, "Published rates over the size of files")
        draw_table(published_rows())


if __name__ == "__main__":
    page()
