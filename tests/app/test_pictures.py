"""What the docs say is on a page is on it still: each is opened about the run of its picture."""

import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app.fleet.asking import ask_fleet
from app.manual.pictures import seen
from app.pages.all import every_page
from app.workspace import STORE_VARIABLE, workspace
from runs.store import Store
from tests import pictures
from tests.app.test_pages import opened
from tests.bundled import demo_store

PAGES = tuple(p for p in every_page() if p.name in seen())

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    """The bundled runs, and those that are made for pictures."""
    own = demo_store(tmp_path_factory)
    pictures.make(own.parent)
    ask_fleet(workspace(str(own)), {}, "now")  # a picture of many runs has the numbers of all
    return own


@pytest.fixture(scope="module")
def ids(store) -> dict[str, str]:
    return {run.manifest.name: run.run_id for run in Store(store).runs()}


def named(at: AppTest) -> str:
    """All that stands on a page by a name of its own, as words alone."""
    labels = [e.label for kind in (at.metric, at.expander, at.tabs) for e in kind]
    return bare("\n".join([*labels, *(e.value for e in at.markdown)]))


def bare(text: str) -> str:
    text = re.sub(r":[\w-]+\[|:material/\w+:", " ", text)
    return " ".join(re.sub(r"[^\w\s]|_", " ", text).split())


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_a_page_shows_what_its_picture_shows(page, store, ids, monkeypatch):
    monkeypatch.setenv(STORE_VARIABLE, str(store))
    told = seen()[page.name]
    asked = pictures.asked(page, ids.get(told.run), ids)
    at = opened(page.file, **asked)
    while "is being made" in named(at):  # as who waits for it; an end of its making, and an error, say other words
        at = at.run()
    assert not at.exception
    there = named(at)
    missing = [h for h in told.headings if bare(h) not in there]
    assert missing == [], "make pictures ARGS=" + page.name


def test_every_page_about_a_run_has_a_picture_of_one():
    assert [p.name for p in every_page() if p.about and not seen()[p.name].run] == []
