"""The run library in a browser: the small ledgers, tags, and the way into a run."""

import re

import pytest
from playwright.sync_api import expect

from runs.store import Store
from tests.app import made_runs
from tests.app.serving import get, serving


@pytest.fixture
def own(tmp_path):
    """A server over a store of its own."""
    run = made_runs.interrupted(Store(tmp_path), "tag <b>me</b>")
    with serving(tmp_path) as address:
        yield address, run


def test_the_small_ledger_appears_by_itself_and_tags_are_kept(visit, own):
    server, run = own
    page = visit(server)
    expect(page.get_by_role("link", name="tag <b>me</b>")).to_be_visible()
    expect(page.get_by_text("484 chip-hours, 73.8 % kept")).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("Useful maths: 33.1 %, Unattributed: 40.7 %"))).to_be_visible()
    page.get_by_role("button", name="More about tag <b>me</b>").click()
    page.get_by_role("menuitem", name="Tags", exact=True).click()
    field = page.get_by_label("One tag a line: key=value")
    expect(field).to_have_value("team=pretraining")
    field.fill("team=pretraining\nowner=<i>ann</i>")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".tag", has_text="owner=<i>ann</i>")).to_be_visible()
    assert get(f"{server}/api/runs/{run.run_id}")[1]["tags"] == {"team": "pretraining", "owner": "<i>ann</i>"}


def test_a_column_sorts(visit, server, store):
    made_runs.interrupted(Store(store), "!! first by name")
    page = visit(server)
    names = page.locator("td.name a")
    expect(names.filter(has_text="!! first by name")).to_be_visible()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(names.first).to_have_text("!! first by name")
    page.get_by_role("button", name="Run ↑").click()
    expect(names.first).not_to_have_text("!! first by name")
