"""In a browser: lanes by lateness and aligned clocks, and bookmarks and comments, each kept by the address."""

import numpy as np
import pytest
from playwright.sync_api import expect

from runs.store import Store
from tests.analyzers.rank_worlds import RankWorld
from tests.app import made_runs
from tests.browser.drawn import settled

HOSTILE = "<img src=x onerror=alert(1)> rank 4 is late"


@pytest.fixture(scope="module")
def served(server, store):
    clock_s = np.repeat([0.0, 0.4, -0.25], 2)
    made = RankWorld(ranks=6, per_host=2, steps=22, slow={4: 0.2}, traced=True, clock_s=clock_s).tables()
    tables = {n: made.arrow(n).to_pydict() for n in ("captures", "steps", "ops", "op_events", "collectives")}
    run = made_runs.write(Store(store), "ranks", tables, {})
    return f"{server}/timeline?run={run.run_id}"


def sharp(page) -> None:
    settled(page)
    expect(page.locator(".timeline .stage")).to_have_attribute("aria-busy", "false")


def test_the_latest_rank_stands_first_and_clocks_are_aligned_also_from_the_address(served, visit):
    page = visit(served)
    sharp(page)
    first = page.locator(".timeline .lane:visible .fold").first
    expect(first).to_contain_text("host-0/0")
    page.get_by_label("Order of lanes").select_option("latest")
    expect(first).to_contain_text("host-2/0")
    said = page.locator(".timeline .ranks")
    expect(said).to_contain_text("Later at matched collectives than the median of their peers")
    page.get_by_label("Clocks").select_option("aligned")
    expect(said).to_contain_text("the clock of host-1 400 ms ahead, host-2 250 ms behind")
    expect(page.locator(".timeline .where")).to_contain_text("clocks aligned")
    page.wait_for_function("() => /lanes=latest/.test(location.search) && /clocks=aligned/.test(location.search)")
    page = visit(page.url)
    sharp(page)
    expect(page.locator(".timeline .lane:visible .fold").first).to_contain_text("host-2/0")
    expect(page.locator(".timeline .ranks")).to_contain_text("host-1 400 ms ahead")
    page.get_by_label("Clocks").select_option("recorded")
    page.get_by_label("Order of lanes").select_option("recorded")
    expect(page.locator(".timeline .ranks")).to_be_hidden()
    page.wait_for_function("() => !/lanes=|clocks=/.test(location.search)")


def test_a_comment_is_text_has_an_address_and_is_deleted(served, visit):
    page = visit(served)
    sharp(page)
    page.locator(".timeline .stage").focus()
    page.keyboard.press("w")
    page.keyboard.press("b")
    page.keyboard.type(HOSTILE)
    page.keyboard.press("Enter")
    entry = page.locator(".timeline .marks .go")
    expect(entry).to_contain_text(HOSTILE)
    assert page.locator(".timeline img").count() == 0
    window = page.locator(".timeline .where").inner_text()  # long drawn: a mark was kept since
    link = page.locator(".timeline .marks a").get_attribute("href")
    page = visit(served.partition("/timeline")[0] + link)
    sharp(page)
    expect(page.locator(".timeline .where")).to_have_text(window)
    expect(page.locator(".timeline .marks .go")).to_have_attribute("aria-current", "true")
    page.get_by_role("button", name="Delete <img").click()
    expect(page.locator(".timeline .marks")).to_be_hidden()
