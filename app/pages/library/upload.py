"""Adding a run from the browser: drop files or folders, watch them arrive, be taken to the ledger.

The files go straight to the server's disk (`PUT /upload/...`), never through the page's session.
"""

from pathlib import Path

import streamlit as st

from app import sharing
from app.components.browser import component
from app.components.text import md
from app.fetching.allowed import allowed
from app.identity.asking import who
from app.identity.base import Role
from app.identity.may import may
from app.pages.you import YOU
from app.workspace import workspace

_upload = component("chipledger_upload", Path(__file__).parent / "upload")


def upload() -> str | None:
    """The upload area; returns the id of a run once, right after it was added. Nothing for who may not add one."""
    if not may(Role.UPLOADER):
        return None
    given = {"prefixes": [str(one) for one in allowed()]}
    result = _upload(key="upload", data=given, on_ingested_change=lambda: None)
    if who().how not in ("open", "server"):
        _seen_by(sharing.usual_group(workspace()))
    return result.ingested["run_id"] if result.ingested else None


def _seen_by(group: str) -> None:
    seen = sharing.seen_by([group] if group else [])
    st.caption(f"Runs that you add are seen by {md(seen)}. [Your page](/{YOU.path}) changes that.")
