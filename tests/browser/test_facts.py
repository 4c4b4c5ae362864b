"""From a training log alone to its MFU: what no file says is asked for once, and one click answers it."""

import re

from playwright.sync_api import expect

from tests.app.serving import get
from tests.app.test_facts import a_log
from tests.browser.drawn import ready


def added(visit, server, text: str, name: str):
    """The page on which somebody lands who adds this log."""
    page = visit(server)
    expect(page.get_by_role("button", name="Choose files")).to_be_visible()
    page.locator("input.pick").set_input_files([{"name": name, "mimeType": "text/plain", "buffer": text.encode()}])
    expect(page).to_have_url(re.compile(r"/facts\?.*run=[0-9a-f]+"))
    return page, re.search(r"run=([0-9a-f]+)", page.url)[1]


def test_a_maxtext_log_alone_tells_its_mfu_after_one_answer(visit, server):
    page, run_id = added(visit, server, a_log(250.0), "alone.log")  # the first click: choosing the file
    expect(page.get_by_text("One answer below tells MFU and useful maths.")).to_be_visible()
    expect(page.get_by_text("250 TFLOP/s a device is 54 % of its peak").first).to_be_visible()
    page.get_by_role("button", name="TPU v5p", exact=True).click()  # the second
    expect(page.get_by_text("Now told: MFU.")).to_be_visible()
    expect(page.get_by_text("54.5 % of the chips' peak")).to_be_visible()
    page.get_by_role("link", name="Open MFU").click()  # the third
    expect(page).to_have_url(re.compile(r"/mfu\?run="))
    expect(page.get_by_text("Usual steps turn 54.5 % of the chips' peak")).to_be_visible()
    assert get(f"{server}/api/runs/{run_id}")[1]["chip"] == "TPU v5p"
    page.goto(server)
    expect(page.get_by_text("TPU v5p").first).to_be_visible()


def test_who_skips_is_asked_where_it_matters_and_answers_there(visit, server):
    page, _ = added(visit, server, a_log(251.0), "skipped.log")
    page.get_by_role("button", name="Skip").click()
    expect(page).to_have_url(re.compile(r"/findings\?run="))
    expect(page.get_by_text("Which chip ran this?")).to_be_visible()
    expect(page.get_by_text("Time of each chip")).to_be_visible()
    page.get_by_role("button", name="TPU v5p", exact=True).click()
    expect(page.get_by_text("How many chips did it hold?")).to_be_visible()
    page.wait_for_timeout(3000)  # once its ledger is known the page is drawn once more, for the mark in its menu
    ready(page)
    page.get_by_role("button", name="Another").or_(page.get_by_text("Another")).first.click()
    page.get_by_role("textbox", name="Number of chips (chips)").fill("none")
    page.get_by_role("button", name="Save", exact=True).first.click()
    expect(page.get_by_text("expected a whole number from 1")).to_be_visible()
    page.get_by_role("textbox", name="Number of chips (chips)").fill("4")
    page.get_by_role("textbox", name="Number of chips (chips)").press("Enter")
    expect(page.get_by_text("4 × TPU v5p")).to_be_visible()
    expect(page.get_by_text("Chip time held").first).to_be_visible()
