"""Signing in in a browser: to the provider, back to the page that was asked for, and what each role sees of it."""

import re

import httpx2
import pytest
from playwright.sync_api import expect

from app.identity.base import Role
from runs.store import Store
from tests.app import made_runs
from tests.app.identities import identified_server

SEARCH = "mfu<30"


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """A server that knows who asks, with a run."""
    folder = tmp_path_factory.mktemp("known")
    run = made_runs.interrupted(Store(folder / "store"))
    with identified_server(folder) as server:
        yield server, run


@pytest.fixture
def visitor(browser):
    """A browser that was never here. Its pages may go to the provider, which is on this machine by another name."""
    made = []

    def open_(address):
        context = browser.new_context()
        made.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.goto(address)
        return page

    yield open_
    for context in made:
        context.close()


def sign_in(page, sub: str) -> None:
    expect(page).to_have_url(re.compile(r"localhost:\d+/oauth2/authorize"))
    page.get_by_role("button", name=sub, exact=True).click()


def test_a_permalink_asks_to_sign_in_and_a_viewer_reads_what_it_leads_to(known, visitor):
    server, run = known
    page = visitor(f"{server.address}/facts?run={run.run_id}")
    sign_in(page, "bob")
    expect(page).to_have_url(re.compile(rf"/facts\?run={run.run_id}"))
    expect(page.get_by_text("What is known")).to_be_visible()
    page.get_by_text("Say or change any fact").click()
    expect(page.get_by_role("button", name="Save").last).to_be_disabled()
    page.goto(server.address)
    expect(page.get_by_text(run.manifest.name).first).to_be_visible()
    expect(page.get_by_role("button", name="Choose files")).to_have_count(0)
    page.goto(f"{server.address}/logout")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("You are signed out")).to_be_visible()
    page.goto(server.address)
    expect(page).to_have_url(re.compile(r"localhost:\d+/oauth2/authorize"))


def test_what_an_admin_changes_on_a_page_is_in_the_audit_log_under_their_name(known, visitor):
    server, run = known
    page = visitor(f"{server.address}/?q={SEARCH}")
    sign_in(page, "ann")
    expect(page.get_by_role("button", name="Choose files")).to_be_visible()
    page.get_by_text("Saved", exact=True).click()
    page.get_by_role("textbox", name="Name for the search as it stands").fill("slow ones")
    page.get_by_role("button", name="Save this search").click()
    with httpx2.Client(base_url=server.address, headers=dict(server.client(Role.ADMIN).headers)) as asks:
        for _ in range(100):
            told = asks.get("/api/audit").json()["audit"]
            if kept := [e for e in told if e["what"] == "keep a search"]:
                break
            page.wait_for_timeout(200)
        assert [(e["who"], e["outcome"], e["about"]) for e in kept] == [
            ("ann@corp.example", "done", f"slow ones, {SEARCH}")
        ]
        assert asks.get("/api/searches").json()["searches"][0]["who"] == "ann@corp.example"


def test_a_page_that_is_open_ends_with_its_session(known, visitor):
    """Signed out in one tab, the other changes nothing more."""
    server, run = known
    page = visitor(f"{server.address}/facts?run={run.run_id}")
    sign_in(page, "ann")
    expect(page.get_by_text("What is known")).to_be_visible()
    other = page.context.new_page()
    other.goto(f"{server.address}/logout")
    other.get_by_role("button", name="Sign out").click()
    expect(other.get_by_text("You are signed out")).to_be_visible()
    page.wait_for_timeout(6000)
    before = server.client(Role.ADMIN).get(f"/api/runs/{run.run_id}/facts").json()
    page.get_by_role("button", name="Open the run").or_(page.get_by_role("button", name="Skip")).first.click()
    page.wait_for_timeout(2000)
    assert server.client(Role.ADMIN).get(f"/api/runs/{run.run_id}/facts").json() == before
    expect(page).to_have_url(re.compile(rf"/facts\?run={run.run_id}"))
