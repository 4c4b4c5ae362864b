"""What is chosen on a page is in its address, and the address alone brings it back."""

import re

from playwright.sync_api import Page, expect

from tests.browser.drawn import bars, click_bar, ready, shown_titles, wait_for_bars


def test_a_click_opens_an_account_and_the_address_says_so(visit, server, run):
    page = visit(f"{server}/ledger?run={run.run_id}")
    click_bar(page, "badput")
    expect(page).to_have_url(re.compile(r"[?&]account=badput(&|$)"))
    expect(page.get_by_role("button", name="Chip time held ›")).to_be_visible()
    page.get_by_role("button", name="Chip time held ›").click()
    expect(page).not_to_have_url(re.compile(r"account="))


def test_the_keyboard_opens_an_account_too(visit, server, run):
    page = visit(f"{server}/ledger?run={run.run_id}")
    page.get_by_role("combobox", name="Open an account").focus()
    page.keyboard.press("Enter")
    page.keyboard.type("Badput")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"[?&]account=badput(&|$)"))


def test_a_permalink_opens_identically_in_a_fresh_browser(visit, server, run):
    first = visit(f"{server}/ledger?run={run.run_id}")
    first.get_by_role("radio", name="Waterfall").or_(first.get_by_text("Waterfall", exact=True)).first.click()
    expect(first).to_have_url(re.compile("view=waterfall"))
    expect(first.locator(".ytick").first).to_have_text("Chip time held")
    click_bar(first, "productive")
    expect(first).to_have_url(re.compile("account=productive"))
    expect(first.locator(".ytick").first).to_have_text("Kept steps")
    second = visit(first.url, fresh=True)
    expect(second.locator(".ytick").first).to_have_text("Kept steps")
    assert shown_titles(second) == shown_titles(first)
    assert bars(second) == bars(first)


def test_a_row_of_the_evidence_leads_into_the_figure(visit, server, run):
    page = visit(f"{server}/ledger?run={run.run_id}")
    ready(page)
    table = page.get_by_test_id("stDataFrame")
    table.scroll_into_view_if_needed()
    box = table.bounding_box()
    page.mouse.click(box["x"] + 18, box["y"] + 35 * 6.5)  # the sixth row below the head: Badput
    expect(page).to_have_url(re.compile(r"[?&]account=badput(&|$)"))
    wait_for_bars(page, "", "badput")


def test_an_unknown_run_is_told_kindly(visit, server):
    page = visit(f"{server}/ledger?run=ffffffffffff")
    expect(page.get_by_text("no run 'ffffffffffff' in this store")).to_be_visible()
    page.get_by_role("link", name="All runs").click()
    expect(page.get_by_role("textbox", name="Search", exact=True)).to_be_visible()


def test_the_other_page_keeps_the_run(visit, server, run):
    page = visit(f"{server}/ledger?run={run.run_id}")
    page.get_by_role("navigation", name="Pages about this run").get_by_role("button", name="Time").click()
    page.get_by_role("link", name="Steps").click()
    expect(page).to_have_url(re.compile(rf"/steps\?run={run.run_id}"))
    expect(page.get_by_text("9 steps were lost and taken again")).to_be_visible()
    scale(page, "Logarithmic")
    expect(page).to_have_url(re.compile("scale=log"))


def scale(page: Page, name: str) -> None:
    page.get_by_text(name, exact=True).first.click()


def test_copy_link_copies_the_address(visit, server, run):
    page = visit(f"{server}/ledger?run={run.run_id}&view=waterfall")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_text("Copied", exact=True)).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == page.url


def test_search_is_in_the_address(visit, server, run):
    page = visit(f"{server}/?q=nothing+is+called+so")
    expect(page.get_by_text("No run matches.")).to_be_visible()
    page.get_by_role("textbox", name="Search", exact=True).fill("LLAMA pretraining")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="llama-70b v5p")).to_be_visible()
    expect(page).to_have_url(re.compile(r"q=LLAMA"))
    page.get_by_role("link", name="llama-70b v5p").click()
    expect(page).to_have_url(re.compile(rf"/findings\?run={run.run_id}"))


def test_an_address_of_an_earlier_version_leads_to_its_page(visit, demo, runs):
    page = visit(f"{demo}/workload?run={runs['reference-serving']}")
    expect(page).to_have_url(re.compile(rf"/traffic\?run={runs['reference-serving']}"))
