"""The menu of a run's pages, the mark on the page that explains the largest loss, and the keys."""

import re

import pytest
from playwright.sync_api import expect

from tests.app.serving import get

GROUPS = ["Overview", "Time", "Speed", "Program", "More"]


def menu(page):
    nav = page.get_by_role("navigation", name="Pages about this run")
    expect(nav.get_by_role("button").first).to_be_visible()
    expect(page.locator("dialog[data-listening]")).to_be_attached()  # a key that is pressed earlier is nobody's
    return nav


def groups(nav):
    return [button.split("\n")[0] for button in nav.get_by_role("button").all_inner_texts()]


def test_the_groups_stand_in_one_row_and_open_without_leaving_the_page(look, demo, runs):
    run = runs["reference-training"]
    page = look(f"{demo}/mfu?run={run}", width=1280)
    nav = menu(page)
    assert groups(nav) == GROUPS
    expect(nav.get_by_role("button", name="Speed")).to_have_attribute("aria-expanded", "true")
    expect(nav.get_by_role("link", name="MFU")).to_have_attribute("aria-current", "page")
    nav.get_by_role("button", name="Time").click()
    expect(nav.get_by_role("link", name="Goodput")).to_be_visible()
    expect(nav.get_by_role("link", name="MFU")).to_have_count(0)
    expect(page).to_have_url(re.compile(rf"/mfu\?run={run}"))
    nav.get_by_role("link", name="Goodput").click()
    expect(page).to_have_url(re.compile(rf"/goodput\?run={run}"))
    expect(nav.get_by_role("link", name="Goodput")).to_have_attribute("aria-current", "page")


def test_what_cannot_be_told_is_off_and_says_why_to_mouse_finger_and_ear(look, demo, runs):
    page = look(f"{demo}/mfu?run={runs['reference-training']}")
    off = menu(page).get_by_role("link", name="Launches")
    expect(off).to_have_attribute("aria-disabled", "true")
    assert "lacks a trace that joins calls with kernels" in off.get_attribute("title")
    assert off.get_attribute("aria-description") == off.get_attribute("title")
    off.click(force=True)  # it is off by its words alone: a finger still asks it why
    expect(menu(page).get_by_role("status")).to_contain_text("Launches: This run lacks")
    expect(page).to_have_url(re.compile("/mfu"))


def test_the_page_that_explains_the_largest_loss_is_marked_once_the_ledger_is_known(look, demo, runs):
    run = runs["reference-training"]
    page = look(f"{demo}/mfu?run={run}")
    nav = menu(page)
    expect(nav.get_by_role("button", name="Time").get_by_role("img")).to_be_visible()
    said = get(f"{demo}/api/runs/{run}/show/ledger")[1]["account"]
    share = max(a["share"] for part in said["children"] if part["name"] == "badput" for a in part["children"])
    nav.get_by_role("button", name="Time").click()
    marked = nav.get_by_role("link").filter(has_text="largest loss")
    expect(marked).to_have_count(1)
    expect(marked).to_contain_text("Interruptions")
    assert f"Infrastructure recovery, {share * 100:.3g} % of the chip time" in marked.get_attribute("title")


@pytest.mark.parametrize(
    ("name", "path", "first", "bar"),
    [
        ("reference-serving", "latency", "Latency", ["Overview", "Serving", "Speed", "Program", "More"]),
        ("compiled-llama3.1-8b-v6e", "compile", "Compile for TPU", ["Program", "Overview", "Speed", "More"]),
        ("54 days on 16,384 accelerators", "interruptions", "Interruptions", GROUPS),
    ],
)
def test_each_kind_of_run_has_its_own_groups(look, demo, runs, name, path, first, bar):
    page = look(f"{demo}/{path}?run={runs[name]}")
    nav = menu(page)
    assert groups(nav) == bar
    named = re.compile(rf"^{first}( |$)")  # the mark may stand behind it
    expect(nav.get_by_role("link", name=named).first).to_be_visible()
    expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_menu_is_two_rows_high_and_stays_in_the_window(look, demo, runs, width):
    page = look(f"{demo}/stragglers?run={runs['reference-training']}", width=width)
    nav = menu(page)
    expect(nav.get_by_role("link", name="Stragglers")).to_be_in_viewport()  # on a phone the row is moved there
    box = nav.bounding_box()
    assert box["height"] < 90 and box["x"] >= 0 and box["x"] + box["width"] <= width


def test_the_planners_stand_together_in_the_bar_at_the_top(look, demo):
    page = look(demo)
    page.get_by_test_id("stTopNavSection").filter(has_text="Planners and labs").click()
    for title in ("Topology lab", "Compile for TPU", "Checkpoint planner", "Serving planner", "Serving cases"):
        expect(page.get_by_role("menuitem", name=title)).to_be_visible()


def test_g_and_a_letter_lead_to_pages_of_the_same_run(visit, demo, runs):
    run = runs["reference-training"]
    page = visit(f"{demo}/steps?run={run}")
    menu(page)
    for letter, path in (("l", "ledger"), ("m", "mfu"), ("o", "findings")):
        page.keyboard.press("g")
        page.keyboard.press(letter)
        expect(page).to_have_url(re.compile(rf"/{path}\?run={run}"))
        menu(page)
    page.keyboard.press("l")  # alone it is no key
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page).to_have_url(re.compile(rf"^{demo}/$"))


def test_brackets_lead_to_the_run_before_and_after_and_stop_at_the_end(visit, demo):
    listed = [r["run_id"] for r in get(f"{demo}/api/runs")[1]["runs"]]
    page = visit(f"{demo}/ledger?run={listed[0]}")
    menu(page)
    page.keyboard.press("]")
    expect(page).to_have_url(re.compile(rf"/ledger\?run={listed[1]}"))
    menu(page)
    page.keyboard.press("[")
    expect(page).to_have_url(re.compile(rf"/ledger\?run={listed[0]}"))
    menu(page)
    page.keyboard.press("[")
    page.keyboard.press("g")
    page.keyboard.press("s")
    expect(page).to_have_url(re.compile(rf"/steps\?run={listed[0]}"))


def test_a_slash_leads_to_the_search_and_what_is_written_there_is_no_key(visit, demo, runs):
    page = visit(f"{demo}/steps?run={runs['reference-training']}")
    menu(page)
    page.keyboard.press("/")
    field = page.get_by_role("textbox", name="Search", exact=True)
    expect(field).to_be_focused()
    expect(page).to_have_url(re.compile(rf"^{demo}/$"))
    page.keyboard.type("gl?/[g")
    expect(field).to_have_value("gl?/[g")
    expect(page).to_have_url(re.compile(rf"^{demo}/$"))
    expect(page.get_by_role("dialog", name="Keys")).to_have_count(0)


def test_a_question_mark_lists_every_key_and_escape_closes_it(visit, demo, runs):
    page = visit("about:blank")
    page.add_init_script("const now = performance.now.bind(performance); performance.now = () => now() / 1000")
    page.goto(f"{demo}/ledger?run={runs['reference-training']}")  # which by its clock was opened just now
    menu(page)
    page.keyboard.press("?")
    told = page.get_by_role("dialog", name="Keys")
    expect(told).to_be_visible()
    for title in ("Search the runs", "The next run in the list", "MFU", "Runs", "Checkpoints"):
        expect(told.get_by_text(title, exact=True)).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("m")
    page.keyboard.press("Escape")
    expect(told).to_have_count(0)
    expect(page).to_have_url(re.compile("/ledger"))
