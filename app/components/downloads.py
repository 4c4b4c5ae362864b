"""A table to take away. The files are made only when asked for."""

import io
from collections.abc import Callable

import pandas as pd
import streamlit as st

from app.cells import file_name, harmless


def downloads(table: pd.DataFrame, name: str, answer: str, figure: Callable[[], bytes] | None) -> None:
    """Buttons for the rows as CSV and Parquet and for the figure, if any, as one HTML page, and a link to the JSON
    `answer`."""
    row, file = st.container(horizontal=True), file_name(name)
    row.download_button(
        "CSV",
        lambda: csv_bytes(table),
        f"{file}.csv",
        "text/csv",
        icon=":material/download:",
        on_click="ignore",
        key=f"csv {name}",
    )
    row.download_button(
        "Parquet",
        lambda: _parquet(table),
        f"{file}.parquet",
        "application/vnd.apache.parquet",
        icon=":material/download:",
        on_click="ignore",
        key=f"parquet {name}",
    )
    if figure is not None:
        row.download_button(
            "Figure as HTML",
            figure,
            f"{file}.html",
            "text/html",
            icon=":material/download:",
            on_click="ignore",
            key=f"html {name}",
        )
    row.link_button("JSON", answer, icon=":material/data_object:")


def csv_bytes(table: pd.DataFrame) -> bytes:
    """The rows as CSV. Text from inputs that a spreadsheet would run as a formula gets an apostrophe in front; numbers,
    negative ones and those in text columns too, stay as they are."""
    shown = table.copy(deep=False)
    for place, (_, values) in enumerate(table.items()):
        if values.dtype == object or isinstance(values.dtype, pd.CategoricalDtype | pd.StringDtype):
            shown.isetitem(place, values.astype(object).map(harmless))
    shown.columns = [harmless(name) for name in table.columns]
    return shown.to_csv(index=False).encode()


def _parquet(table: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False)
    return buffer.getvalue()
