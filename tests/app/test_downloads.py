"""Tables as CSV: what a spreadsheet would run is made harmless, numbers stay numbers."""

import csv
import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from app.cells import FILE_NAME_BYTES, file_name
from app.components.downloads import csv_bytes
from app.figures.base import standalone
from app.serve.server import SETTINGS

PROJECT = Path(__file__).parents[2]


def test_cells_that_would_be_run_are_made_harmless_and_numbers_stay():
    bad = ['=HYPERLINK("http://h")', "+cmd|'/c calc'!A0", "-1+1", "\uff1d1+1", "\t=1", "\r=1"]
    table = pd.DataFrame(
        {
            "name": [*bad, "fine", None],
            "number": [-1.5, 2, np.nan, -3, 4, 5, 6, -1e30],
            "whole": range(-4, 4),
            "mixed": [-1, "-2", "-.5e3", "+4", "-x", "1-1", "a\r=b", None],
            "=1+1": pd.Categorical(["@x"] * 8),
            "when": pd.to_datetime([0] * 8, unit="ns", utc=True),
            "maybe": pd.array([-1, None] * 4, dtype="Int64"),
        }
    )
    before = table.copy()
    rows = list(csv.reader(io.StringIO(csv_bytes(table).decode(), newline="")))
    assert rows[0] == ["name", "number", "whole", "mixed", "'=1+1", "when", "maybe"]
    columns = dict(zip(table.columns, zip(*rows[1:], strict=True), strict=True))
    assert list(columns["name"]) == [f"'{b}" for b in bad[:-1]] + ["'\n=1", "fine", ""]
    assert columns["number"][0] == "-1.5" and columns["number"][7] == "-1e+30" and columns["whole"][0] == "-4"
    assert list(columns["mixed"]) == ["-1", "-2", "-.5e3", "+4", "'-x", "1-1", "a\n=b", ""]
    assert set(columns["=1+1"]) == {"'@x"} and columns["maybe"][:2] == ("-1", "")
    assert columns["when"][0] == "1970-01-01 00:00:00+00:00"
    pd.testing.assert_frame_equal(table, before)


def test_every_table_that_is_taken_away_as_csv_goes_that_way():
    for file in (PROJECT / "app").rglob("*.py"):
        if file.name != "downloads.py":
            assert not re.search(r"\.to_csv\(", file.read_text()), file
    assert SETTINGS["client.disableDataExport"], "the CSV that Streamlit's own tables offer is not harmless"


ENDS_SCRIPT = "a</script><script>alert(1)</script><!--<script>"


def test_a_figure_as_a_page_runs_no_script_of_a_name():
    figure = go.Figure(go.Bar(x=[ENDS_SCRIPT], y=[1], name=ENDS_SCRIPT, hovertext=ENDS_SCRIPT))
    figure.update_layout(xaxis_title=ENDS_SCRIPT)
    own = standalone(go.Figure(go.Bar(x=["a"], y=[1])), "a", "a").decode()
    page = standalone(figure, ENDS_SCRIPT, ENDS_SCRIPT).decode()
    for mark in ("<script", "</script", "<!--", "<script>alert"):
        assert page.count(mark) == own.count(mark), mark
    assert page.count("alert(1)") >= 4, "it is told, as text"


NAMES = {
    "llama3.1-8b v6e (2)-mfu": "llama3.1-8b v6e (2)-mfu",
    "../../etc/passwd": "etc-passwd",
    'a"b\\c/d': "a-b-c-d",
    "a\r\nSet-Cookie: x": "a--Set-Cookie- x",
    "\u202egnp.exe": "gnp.exe",
    ENDS_SCRIPT: "a--script--script-alert(1)--script------script",
    "\u30e9\u30f3 2": "\u30e9\u30f3 2",
    " ..": "file",
    "": "file",
}


@pytest.mark.parametrize("text", NAMES, ids=range(len(NAMES)))
def test_names_of_files_are_plain(text):
    assert file_name(text) == NAMES[text]


def test_names_of_files_are_short():
    assert len(file_name("\u00e9" * 10_000).encode()) == FILE_NAME_BYTES
