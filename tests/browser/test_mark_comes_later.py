"""The mark of the largest loss comes when the ledger is known; what was opened on the page meanwhile stays open."""

from playwright.sync_api import expect

from runs.store import Store
from tests.app import made_runs
from tests.app.serving import serving
from tests.browser.test_menu import menu


def test_what_is_open_on_the_page_stays_open_when_the_mark_comes(visit, tmp_path):
    run = made_runs.interrupted(Store(tmp_path), "marked").run_id
    with serving(tmp_path) as address:
        page = visit(f"{address}/goodput?run={run}")
        nav = menu(page)
        choices = page.get_by_role("button", name="All of the job")
        choices.click()
        opened = page.get_by_test_id("stPopoverBody")
        expect(opened).to_be_visible()
        expect(nav.get_by_role("img").first).to_be_visible()
        expect(opened).to_be_visible()
        page.keyboard.press("Escape")
        nav.get_by_role("link", name="Interruptions").click()
        expect(page).to_have_url(f"{address}/interruptions?run={run}")
