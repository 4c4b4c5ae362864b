"""SQL over the tables of a run: a box, what may be asked, and the answer to take away."""

from typing import Any
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from app import querying
from app.components.current import choose, current_run
from app.components.header import header
from app.components.notice import notice
from app.components.option import shown
from app.components.text import md
from app.pages.query.examples import fitting
from errors import ChipledgerError
from errors import format as fmt
from runs.query import ANSWER_BYTES, MEMORY_MIB, Answer
from runs.query_options import ROWS, TIMEOUT
from runs.run import Run

SHOWN_ROWS = 2000  # of the answer, of which the files hold all that was not cut off
KEPT = "query answer"  # of this visitor: a page that is drawn again does not ask again
HELP = (
    f"One SELECT of DuckDB's SQL. It ends after {TIMEOUT.default} s, within {MEMORY_MIB} MiB of memory; the answer is "
    f"cut off after {ROWS.default:,} rows or {ANSWER_BYTES >> 20} MiB. Nothing can be changed, and no file be read."
)


def page() -> None:
    run, extras, _ = current_run()
    header(run, extras)
    try:
        tables = querying.tables(run)
    except ChipledgerError as e:
        notice(e)
        st.stop()
    sql = box({t["name"]: t["rows"] for t in tables})
    if sql:
        ask(run, sql)
    told(tables)


def box(held: dict[str, int]) -> str:
    """What is asked, as the address has it; it is changed by the box, or by an example."""
    sql = st.query_params.get("sql", "").strip()
    key = shown("sql", sql)
    st.caption("To begin with:")
    with st.container(horizontal=True):
        for example in fitting(held):
            st.button(example.label, on_click=choose, args=("sql", example.sql), type="tertiary")
    with st.form("query", border=False):
        st.text_area("SQL", key=key, height=200, help=HELP, placeholder="select * from steps limit 10")
        st.form_submit_button(
            "Run", type="primary", icon=":material/play_arrow:", on_click=lambda: choose("sql", st.session_state[key])
        )
    return sql


def ask(run: Run, sql: str) -> None:
    """The answer, or why there is none."""
    asked = (run.writing, sql)
    kept = st.session_state.get(KEPT)
    try:
        if kept is None or kept[0] != asked:
            with st.spinner("Asking"):
                kept = st.session_state[KEPT] = (asked, querying.answered(run, sql))
        frame = querying.shown(kept[1], SHOWN_ROWS)
    except ChipledgerError as e:
        notice(e, library=False)
        return
    answered(run, sql, kept[1], frame)


def answered(run: Run, sql: str, answer: Answer, frame: pd.DataFrame) -> None:
    st.markdown(f"**{md(querying.note(answer))}.**")
    st.dataframe(frame, hide_index=True)
    if answer.table.num_rows > len(frame):
        held = f"the first {answer.table.num_rows:,} alone" if answer.cut else "all"
        st.caption(f"The first {len(frame):,} are shown; the files below hold {held}.")
    name = f"{run.manifest.name}-{querying.file_stem(answer)}"
    with st.container(horizontal=True):
        _download("CSV", lambda: querying.csv_text(answer).encode(), f"{name}.csv", querying.MEDIA["csv"])
        _download("Parquet", lambda: querying.parquet_bytes(answer), f"{name}.parquet", querying.MEDIA["parquet"])
        address = f"/api/runs/{run.run_id}/query?{urlencode({'sql': sql})}"
        st.link_button("JSON", address, icon=":material/data_object:")


def _download(label: str, data: Any, name: str, media: str) -> None:
    st.download_button(label, data, name, media, icon=":material/download:", on_click="ignore", key=f"take {label}")


def told(tables: list[dict[str, Any]]) -> None:
    """The tables that the run holds, each with its columns; of the others the names."""
    st.markdown("**Tables of this run**")
    for table in tables:
        if table["rows"]:
            title = f"`{table['name']}`: {fmt.count(table['rows'], 'row')}; a row is {table['row']}"
            with st.expander(title, icon=":material/table:"):
                st.dataframe(table["columns"], hide_index=True)
    if empty := [f"`{t['name']}`" for t in tables if not t["rows"]]:
        st.caption(f"Without rows here: {', '.join(empty)}.")


if __name__ == "__main__":
    page()
