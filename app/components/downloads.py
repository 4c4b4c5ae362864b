"""A table to take away. The files are made only when asked for."""

import io
from collections.abc import Callable

import pandas as pd
import streamlit as st


def downloads(table: pd.DataFrame, name: str, answer: str, figure: Callable[[], bytes]) -> None:
    """Buttons for the rows as CSV and Parquet and for the figure as one HTML page, and a link to the JSON `answer`."""
    row = st.container(horizontal=True)
    row.download_button("CSV", lambda: table.to_csv(index=False).encode(), f"{name}.csv", "text/csv",
                        icon=":material/download:", on_click="ignore", key=f"csv {name}")  # fmt: skip
    row.download_button("Parquet", lambda: _parquet(table), f"{name}.parquet", "application/vnd.apache.parquet",
                        icon=":material/download:", on_click="ignore", key=f"parquet {name}")  # fmt: skip
    row.download_button("Figure as HTML", figure, f"{name}.html", "text/html", icon=":material/download:",
                        on_click="ignore", key=f"html {name}")  # fmt: skip
    row.link_button("JSON", answer, icon=":material/data_object:")


def _parquet(table: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False)
    return buffer.getvalue()
