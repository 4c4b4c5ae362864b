"""What the pages of bundled runs draw can be read: texts, figures, heads and cells of tables, pictures.

Verdicts, notes and rows of a terminal are looked at where all questions are asked (`tests/app/asking.py`).
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from app.menu import Page
from app.pages.all import every_page
from app.workspace import STORE_VARIABLE, workspace
from runs.run import Run
from tests.app.headlines import unread
from tests.app.test_pages import opened
from tests.bundled import demo_store

RUNS = ("54 days on 16,384 accelerators", "reference-serving", "reference-training", "compiled-llama3.1-8b-v6e")
SLOW = {"findings", "critical_path", "query", "compare"}  # seconds each; their words are looked at where they are asked
BINARY = re.compile(r"\d\s?[KMGT]iB\b|\((?:[KMGT]iB)\)")
KEY = re.compile(r"^[a-z0-9]+(_[a-z0-9]+)+$")
TITLES = ("title", "name", "text", "ticktext", "hovertext", "hovertemplate", "label", "labels")


def strings(part: Any, key: str = "") -> Iterator[str]:
    """What a picture says: titles, labels, ticks and hovers, however deep."""
    if isinstance(part, dict):
        for name, value in part.items():
            yield from strings(value, name)
    elif isinstance(part, list):
        for value in part:
            yield from strings(value, key)
    elif isinstance(part, str) and key in TITLES:
        yield part


def texts(at: Any) -> Iterator[str]:
    for kind in (at.markdown, at.caption, at.info, at.warning, at.subheader):
        yield from (e.value for e in kind)
    for metric in at.metric:
        yield from (metric.label, metric.value, metric.help or "")
    for chart in at.get("plotly_chart"):
        yield from strings(json.loads(chart.proto.spec))


def heads(table: Any) -> Iterator[str]:
    """Of a table's columns, as they are shown."""
    config = json.loads(table.proto.columns or "{}")
    for name in table.value.columns:
        yield (config.get(str(name)) or {}).get("label") or str(name)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    store = demo_store(tmp_path_factory)
    return store, {r.manifest.name: r for r in workspace(str(store)).store.runs()}


def pages(stored: dict[str, Run], name: str) -> Iterator[Page]:
    """Those that tell of the run: all where everything is tried, else those that no run before it shows."""
    every = settings.get_current_profile_name() == "ci"
    before = () if every else RUNS[: RUNS.index(name)]
    for page in every_page():
        seen = any(page.tells_of(stored[other]) for other in before)
        if page.about and page.name not in SLOW and page.tells_of(stored[name]) and not seen:
            yield page


@pytest.mark.parametrize("name", RUNS)
def test_all_that_pages_draw_can_be_read(runs, monkeypatch, name):
    store, stored = runs
    monkeypatch.setenv(STORE_VARIABLE, str(store))
    run = stored[name]
    wrong: list[tuple[str, Any]] = []
    for page in pages(stored, name):
        at = opened(page.file, run=run.run_id)
        assert not at.exception, page.name
        found = list(texts(at))
        wrong += [(page.name, text[:200]) for text in found if unread(text) or BINARY.search(text)]
        shown = [head for table in at.dataframe for head in heads(table)]
        wrong += [(page.name, head) for head in shown if KEY.match(head) or unread(head)]
    assert wrong == []
