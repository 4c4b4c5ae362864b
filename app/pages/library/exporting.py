"""Rows of the library to take away."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from app.cells import harmless
from app.library.columns import COLUMNS, Row
from app.library.table import table
from app.pages.library.dialogs import closed
from app.workspace import Workspace
from errors import format as fmt

DATE = "date"


@st.dialog("Export", on_dismiss=closed)
def export(place: Workspace, ids: Sequence[str], found: Callable[[], Sequence[str]]) -> None:
    """The rows that are selected, or all that the search finds, as CSV or JSON."""
    chosen, every = ids, found()
    if len(every) > len(ids):
        offered = {True: f"The {fmt.count(len(ids), 'selected run')}", False: f"All {len(every):,} that are found"}
        if not st.radio("Runs", list(offered), format_func=offered.__getitem__, label_visibility="collapsed"):
            chosen = every
    rows = table(place).addressed(chosen)
    st.caption("Every column with its exact value; what is not known is empty.")
    buttons = st.container(horizontal=True)
    for label, write, kind in (("CSV", as_csv, "text/csv"), ("JSON", as_json, "application/json")):
        buttons.download_button(
            label,
            lambda write=write: write(rows),
            f"runs.{label.lower()}",
            kind,
            icon=":material/download:",
            on_click="ignore",
            key=f"export {label}",
        )


def as_csv(rows: Sequence[Row]) -> bytes:
    """Text that a spreadsheet would run as a formula gets an apostrophe in front."""
    written = io.StringIO(newline="")
    told = [values(row) for row in rows]
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(["run_id", *(c.name for c in COLUMNS)])
    writer.writerows(["" if v is None else harmless(v) for v in row.values()] for row in told)
    return written.getvalue().encode()


def as_json(rows: Sequence[Row]) -> bytes:
    told = {"runs": [values(row) for row in rows]}
    return json.dumps(told, ensure_ascii=False, indent=1, allow_nan=False).encode()


def values(row: Row) -> dict[str, Any]:
    """Every column as it is compared: shares from 0 to 1, times in seconds, days as text in UTC."""
    told = {c.name: fmt.date(c.value(row)) if c.kind == DATE and c.value(row) else c.value(row) for c in COLUMNS}
    return {"run_id": row.run_id, **told}
