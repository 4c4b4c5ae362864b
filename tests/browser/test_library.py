"""The run library in a browser: the small ledgers, tags, and the way into a run."""

import re
import time
from pathlib import Path

import pytest
from playwright.sync_api import expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

import app.pages.library
from app.components.browser import script
from runs.live import Live
from runs.store import Store
from tests.app import made_runs
from tests.app.serving import get, serving

TABLE = Path(app.pages.library.__file__).with_name("runs_table")
DRAWER = """async script => {
  const made = await import(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
  const tell = (_, said) => (window.asked = said);
  window.draw = data => made.default({ parentElement: document.body, data, setTriggerValue: tell });
}"""


def row(name: str, steps: str) -> dict:
    """A run as the table is given it."""
    run = {"id": name, "name": name, "href": "#", "marks": [], "tags": [], "bar": [], "notes": None, "menu": []}
    return {**run, "starred": False, "cells": {"steps": steps}}


def given(*rows: dict) -> dict:
    column = {"key": "steps", "title": "Steps", "sort": "steps", "hover": ""}
    sort = {"by": "steps", "up": True}
    return {"columns": [column], "usual": True, "sort": sort, "rows": rows, "bulk": [], "told": None}


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


class Held:
    """The way from the server to a page, which may be slow."""

    def __init__(self, page):
        self.holds, self.kept = False, []
        page.route_web_socket(re.compile("/_stcore/stream"), self._begun)

    def _begun(self, browser):
        self.browser, server = browser, browser.connect_to_server()
        server.on_message(self._told)
        browser.on_message(server.send)

    def _told(self, said):
        self.kept.append(said) if self.holds else self.browser.send(said)

    def answers(self):
        return sum(ForwardMsg.FromString(said).WhichOneof("type") == "script_finished" for said in self.kept)

    def let_go(self):
        self.holds = False
        for said in self.kept:
            self.browser.send(said)


def test_a_list_that_is_drawn_again_by_itself_stays_as_it_was_sorted(visit, own, tmp_path):
    """The browser asks for it before it has heard of the order that was chosen."""
    Store(tmp_path).live.write(Live("night", "p", "job", last_poll_ns=time.time_ns()))  # looked at again and again
    page = visit("about:blank")
    way = Held(page)
    page.goto(own[0])
    turned = page.get_by_role("button", name="Run ↑")
    button = page.get_by_role("button", name="Run", exact=True)
    expect(button).to_be_visible()
    way.holds = True
    button.click()
    while way.answers() < 3:  # to the click, and to what asks by itself
        page.wait_for_timeout(100)
    way.let_go()
    expect(turned).to_be_visible()
    page.wait_for_timeout(1000)
    assert turned.is_visible()


@pytest.mark.parametrize(
    ("button", "asked"),
    [("Run", {"act": "sort", "ids": ["name"]}), ("Star b", {"act": "star", "ids": ["b"]})],
    ids=["a head", "a row"],
)
def test_a_click_is_heard_though_numbers_of_other_rows_come_while_the_button_is_down(visit, button, asked):
    page = visit("about:blank")
    page.set_content(TABLE.with_suffix(".html").read_text())
    page.evaluate(DRAWER, script(TABLE.with_suffix(".js")))
    draw = "rows => window.draw(rows)"
    page.evaluate(draw, given(row("a", ""), row("b", "2"), row("c", "")))
    page.get_by_role("button", name=button, exact=True).hover()
    page.mouse.down()
    page.evaluate(draw, given(row("a", "1"), row("b", "2"), row("c", "3")))
    page.mouse.up()
    assert page.evaluate("window.asked") == asked
    assert page.locator("tbody").inner_text().split() == ["☆a", "1", "☆b", "2", "☆c", "3"]
