"""What people do with runs of the list, in a browser: each is there for whoever asks next."""

import re
import time

import pytest
from playwright.sync_api import expect

from app.components.live import LIVE_SECONDS
from runs.live import Live
from runs.store import Store
from tests.app import made_runs
from tests.app.serving import get, serving

HOSTILE = (
    "# **hung** <script>alert(1)</script> <img src=x onerror=alert(1)> ![pic](http://127.0.0.1:9/x.png) "
    "[go](javascript:alert(1)) http://127.0.0.1:9/y"
)


@pytest.fixture
def own(tmp_path):
    """A server over a store of its own with two runs."""
    store = Store(tmp_path)
    runs = [made_runs.interrupted(store, name) for name in ("one", "two")]
    with serving(tmp_path) as address:
        yield address, {r.manifest.name: r.run_id for r in runs}


def menu(page, name, item):
    page.get_by_role("button", name=f"More about {name}").click()
    page.get_by_role("menuitem", name=item, exact=True).click()


def row(page, name):
    return page.locator("tr", has=page.get_by_role("link", name=name, exact=True))


def test_a_run_is_renamed_starred_found_deleted_and_brought_back(visit, own):
    server, ids = own
    page = visit(server)
    menu(page, "one", "Rename")
    page.get_by_label("Name", exact=True).fill("night <b>run</b>")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("link", name="night <b>run</b>")).to_be_visible()
    named = {r["run_id"]: (r["name"], r["stored_name"]) for r in get(f"{server}/api/runs")[1]["runs"]}
    assert named[ids["one"]] == ("night <b>run</b>", "one")

    page.get_by_role("button", name="Star two").click()
    expect(page.get_by_role("button", name="Star two")).to_have_attribute("aria-pressed", "true")
    search = page.get_by_role("textbox", name="Search")
    search.fill("is:starred chip:v5p")
    search.press("Enter")
    expect(page.get_by_text("1 run of 2")).to_be_visible()
    expect(page.get_by_role("link", name="two", exact=True)).to_be_visible()
    expect(page).to_have_url(re.compile(r"q=is%3Astarred"))
    search.fill("chipp:v5p")
    search.press("Enter")
    expect(page.get_by_text("chip", exact=False).filter(has_text="chipp").first).to_be_visible()
    search.fill("")
    search.press("Enter")

    menu(page, "two", "Delete")
    expect(page.get_by_text("Deleted 1 run.")).to_be_visible()
    expect(page.get_by_role("link", name="two", exact=True)).to_have_count(0)
    assert get(f"{server}/api/runs/{ids['two']}")[0] == 404
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("link", name="two", exact=True)).to_be_visible()
    menu(page, "two", "Delete")
    page.get_by_role("button", name="Bin (1)").click()
    expect(page).to_have_url(re.compile("view=bin"))
    menu(page, "two", "Restore")
    expect(page.get_by_text("Brought back 1 run.")).to_be_visible()
    assert {r["name"] for r in get(f"{server}/api/runs?q=is:starred")[1]["runs"]} == {"two"}


def test_a_note_is_shown_as_text_and_asks_nobody(visit, own):
    server, ids = own
    page = visit(server)
    asked, dialogs = [], []
    page.on("request", lambda r: None if r.url.startswith((server, "data:", "blob:")) else asked.append(r.url))
    page.on("dialog", lambda d: (dialogs.append(d.message), d.dismiss()))
    menu(page, "one", "Notes")
    page.get_by_role("textbox", name="A note").fill(HOSTILE)
    page.get_by_role("button", name="Save the note").click()
    expect(page.get_by_role("button", name=re.compile("Notes of one"))).to_be_visible()
    page.goto(f"{server}/findings?run={ids['one']}")
    page.get_by_role("button", name=re.compile("note", re.IGNORECASE)).first.click()
    expect(page.get_by_text("alert(1)").first).to_be_visible()
    page.wait_for_timeout(500)
    assert (
        page.locator("img[src='x'], img[src*='127.0.0.1:9'], a[href^='javascript'], a[href*='127.0.0.1:9']").count()
        == 0
    )
    assert asked == [] and dialogs == []


def test_several_runs_are_grouped_and_what_cannot_be_compared_is_said(visit, own):
    server, ids = own
    page = visit(server)
    page.get_by_role("checkbox", name="Select one", exact=True).check()
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.get_by_text("2 to 200 runs, laid side by side")).to_be_visible()
    page.get_by_role("checkbox", name="Select two", exact=True).check()
    expect(page.get_by_text("2 selected")).to_be_visible()
    page.get_by_role("button", name="Compare", exact=True).click()
    page.wait_for_url(re.compile(r"/(compare|several)\?"))
    page = visit(server)
    page.get_by_role("checkbox", name="Select one", exact=True).check()
    page.get_by_role("checkbox", name="Select two", exact=True).check()
    page.get_by_role("button", name="Archive", exact=True).click()
    expect(page.get_by_text("Archived 2 runs.")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(row(page, "one")).to_be_visible()
    assert {r["archived"] for r in get(f"{server}/api/runs")[1]["runs"]} == {False}


def test_what_is_asked_stays_while_the_list_is_drawn_again_by_itself(visit, own, tmp_path):
    """While a job is followed, or numbers are worked out, the list looks again every few seconds."""
    server, _ = own
    Store(tmp_path).live.write(Live(name="night", project="p", job="j", last_poll_ns=time.time_ns()))
    page = visit(server)
    expect(page.get_by_text("Following job j of project p")).to_be_visible()
    menu(page, "one", "Notes")
    page.get_by_role("textbox", name="A note").fill("half a thought")
    page.wait_for_timeout(2500 * LIVE_SECONDS)
    expect(page.get_by_role("textbox", name="A note")).to_have_value("half a thought")
    page.get_by_role("button", name="Save the note").click()
    expect(page.get_by_role("button", name=re.compile("Notes of one"))).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    menu(page, "two", "Rename")
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    page.wait_for_timeout(1500 * LIVE_SECONDS)
    expect(page.get_by_role("dialog")).to_have_count(0)
