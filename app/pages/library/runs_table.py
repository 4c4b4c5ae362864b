"""The list of runs: each with a small picture of its ledger, a link and its tags. Text is shown as text, not HTML."""

from pathlib import Path
from typing import Any

from app.components.browser import component

_table = component("chipledger_runs", Path(__file__).parent / "runs_table")


def runs_table(rows: list[dict[str, Any]]) -> tuple[str | None, str | None]:
    """Draws the rows; returns (run to open, run whose tags to edit), each only right after it was asked for."""
    asked = _table(key="runs", data=rows, on_opened_change=lambda: None, on_edited_change=lambda: None)
    return asked.opened, asked.edited
