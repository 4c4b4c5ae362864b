"""The timeline in a browser: it draws, comes closer, tells what is under the pointer, finds, and stays where it is."""

import re

import pytest
from playwright.sync_api import expect

from app.cli import main
from runs.store import Store
from tests.app import made_runs
from tests.app.serving import get, serving
from tests.browser.drawn import settled
from tests.bundled import RUNS

INK = """canvas => { const g = canvas.getContext('2d'), {width, height} = canvas;
  const d = g.getImageData(Math.round(width * 0.25), 40, Math.round(width * 0.7), height - 60).data; let n = 0;
  for (let i = 3; i < d.length; i += 4) n += d[i] > 40; return n }"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    assert main(["--store", str(folder), "ingest", str(RUNS / "pytorch")]) == 0
    hostile = "<img src=x onerror=alert(1)>" + "n" * 10_000
    lifecycle = {"kind": ["custom"], "start_ns": [1_760_000_000_000_000_000], "end_ns": [1_760_000_001_000_000_000]}
    made_runs.write(Store(folder), "hostile", {"lifecycle": lifecycle | {"detail": [hostile]}}, {})
    with serving(folder) as address:
        runs = {r["name"]: r["run_id"] for r in get(f"{address}/api/runs")[1]["runs"]}
        yield address, runs


def drawn(page) -> int:
    """Pixels of marks, once there are some."""
    settled(page)
    canvas = page.locator(".timeline canvas")
    page.wait_for_function(f"canvas => ({INK})(canvas) > 2000", arg=canvas.element_handle())
    return canvas.evaluate(INK)


@pytest.mark.parametrize("dark", [False, True])
def test_a_wheel_comes_closer_and_a_click_tells_what_an_event_is(served, visit, dark):
    address, runs = served
    run = next(run for name, run in runs.items() if "pytorch" in name)
    page = visit(f"{address}/timeline?run={run}", dark=dark)
    drawn(page)
    canvas = page.locator(".timeline canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    where = page.locator(".timeline .where")
    expect(where).to_contain_text("2.39 s")
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 70)
    for _ in range(6):
        page.mouse.wheel(0, -300)
    expect(where).not_to_contain_text("2.39 s")
    page.wait_for_function("() => /from=/.test(location.search)")
    drawn(page)
    page.mouse.click(box["x"] + box["width"] * 0.3, box["y"] + 26 + 18 * 2 + 22)
    card = page.locator(".timeline .card")
    expect(card).to_contain_text("Took")
    expect(card).to_contain_text("Lane")
    page.get_by_role("button", name="Whole run").click()
    expect(where).to_contain_text("2.39 s")


def test_a_name_is_found_and_the_address_leads_back_to_it(served, visit):
    address, runs = served
    run = next(run for name, run in runs.items() if "pytorch" in name)
    page = visit(f"{address}/timeline?run={run}")
    drawn(page)
    page.get_by_label("Find events by name").fill("all-reduce")
    page.keyboard.press("Enter")
    hits = page.locator(".timeline .hits")
    expect(hits).to_contain_text(re.compile(r"\d found"))
    card = page.locator(".timeline .card")
    expect(card).to_contain_text("all-reduce")
    page.wait_for_function("() => /at=\\d/.test(location.search)")
    where, url, first = page.locator(".timeline .where"), page.url, card.inner_text()
    drawn(page)
    there = where.inner_text()
    page.get_by_role("button", name="Next hit").click()
    expect(where).not_to_have_text(there)  # what the address, the card and the picture tell comes one after the other
    expect(card).not_to_have_text(first)
    page.wait_for_function("url => location.href !== url", arg=url)
    told, seen = card.inner_text(), where.inner_text()
    page = visit(page.url)
    drawn(page)
    expect(page.locator(".timeline .card")).to_contain_text(told.splitlines()[0])
    expect(page.locator(".timeline .where")).to_have_text(seen)


def test_what_a_job_calls_its_events_is_text(served, visit):
    address, runs = served
    page = visit(f"{address}/timeline?run={runs['hostile']}")
    drawn(page)
    box = page.locator(".timeline canvas").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.6, box["y"] + 26 + 22 + 7)
    expect(page.locator(".timeline .card")).to_contain_text("<img src=x onerror=alert(1)>")
    assert page.locator(".timeline img").count() == 0
