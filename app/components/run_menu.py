"""The menu of a run's pages: groups in one row, the pages of the open group below it, and a mark on the page that
explains the largest loss. One element, however many pages there are."""

from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import streamlit as st

from app.components.browser import component
from app.components.by_itself import fragment
from app.components.howto import lacking
from app.components.live import address
from app.components.loss_mark import NOT_KNOWN_YET, loss_mark
from app.groups import MORE
from app.menu import Page
from app.pages.all import grouped
from app.pages.topology import TOPOLOGY
from app.workspace import Workspace
from runs.run import Run

LOOK_SECONDS = 2.0  # how often it is asked whether a ledger that is being computed is known
_menu = component("chipledger_run_menu", Path(__file__).parent / "run_menu")


@fragment
def run_menu(run: Run, place: Workspace, spec: str | None) -> None:
    """Draw it; leads on where a page was chosen. `spec`: the run's slice, as the topology lab names it.

    Where the ledger is not known yet, the browser has the menu alone drawn again until the mark can be set: whatever
    was opened meanwhile on the page stays open.
    """
    mark = loss_mark(run, place.registry)
    named, leads = address(run, place), dict[str, tuple[Page, dict[str, str]]]()
    groups = []
    for title, pages in _with_slice(grouped(run), spec).items():
        entries = []
        for page, tells in pages:
            given = {"spec": spec} if page is TOPOLOGY and spec else {"run": named}
            leads[page.name] = page, given
            entries.append(_entry(page, given, "" if tells else lacking(run, page)))
        groups.append({"title": title, "pages": entries})
    look_ms = LOOK_SECONDS * 1000 if mark is NOT_KNOWN_YET else None
    data = {"groups": groups, "mark": mark or None, "look_ms": look_ms}
    told = _menu(key="run_menu", data=data, on_go_change=lambda: None, on_look_change=lambda: None)
    if told.go in leads:
        page, given = leads[told.go]
        st.switch_page(page.file, query_params=given)


def _with_slice(groups: dict[str, list[tuple[Page, bool]]], spec: str | None) -> dict[str, list[tuple[Page, bool]]]:
    if spec:
        groups.setdefault(MORE, []).append((TOPOLOGY, True))
    return groups


def _entry(page: Page, given: dict[str, str], why: str) -> dict[str, Any]:
    href = f"/{page.path}?{urlencode(given, quote_via=quote, safe=':')}"
    return {"name": page.name, "title": page.title, "asks": page.asks, "href": href, "why": why}
