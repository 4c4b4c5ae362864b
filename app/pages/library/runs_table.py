"""The list of runs: each with a small picture of its ledger, its tags and what can be done. Text is shown as text, not
HTML. Keys: arrows move through the rows, Enter opens, x selects, s stars.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from app.components.browser import component

_table = component("chipledger_runs", Path(__file__).parent / "runs_table")
KEY = "runs"


def runs_table(given: dict[str, Any], asked: Callable[[str, list[str]], None]) -> None:
    """Draws it. `asked` is called with what was asked for and of which runs, before anything is drawn anew."""

    def changed() -> None:
        if said := st.session_state[KEY].get("asked"):
            asked(str(said["act"]), [str(i) for i in said["ids"]])

    _table(key=KEY, data=given, on_asked_change=changed)
