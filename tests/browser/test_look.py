"""Light and dark, wide and narrow: everything readable, nothing cut off or pushed out of the window."""

import pytest
from playwright.sync_api import expect

from app.theme import contrast
from tests.browser.drawn import ready

COLOURS = """(selector) => { const e = document.querySelector(selector);
  const paper = (n) => { for (; n; n = n.parentElement) { const c = getComputedStyle(n).backgroundColor;
    if (c !== 'rgba(0, 0, 0, 0)') return c; } return 'rgb(255, 255, 255)'; };
  const s = getComputedStyle(e);
  return [e.ownerSVGElement ? s.fill : s.color, paper(e)]; }"""
INSIDE = "() => { const m = document.querySelector('[data-testid=stMain]'); return [m.scrollWidth, m.clientWidth] }"
CUT = """() => [...document.querySelectorAll('[data-testid=stMetricValue] *, [data-testid=stMetricLabel] *')]
  .filter((e) => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).textOverflow === 'ellipsis')
  .map((e) => e.textContent)"""


def hexes(pair):
    parts = [[int(float(v)) for v in c.strip("rgba()").split(",")[:3]] for c in pair]
    return ["#" + "".join(f"{v:02X}" for v in part) for part in parts]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("path", ["ledger", "ledger&view=waterfall", "steps"])
def test_text_reads_in_light_and_dark(look, server, run, tmp_path, dark, path):
    page_name, _, rest = path.partition("&")
    page = look(f"{server}/{page_name}?run={run.run_id}&{rest}", dark=dark)
    ready(page)
    page.screenshot(path=tmp_path / f"{path}-{'dark' if dark else 'light'}.png", full_page=True)
    for selector in ("h5", "[data-testid=stMetricValue]", "[data-testid=stMetricLabel] p", ".xtick text"):
        page.wait_for_selector(selector)
        text, paper = hexes(page.evaluate(COLOURS, selector))
        assert contrast(text, paper) >= 4.5, (selector, text, paper)
    paper = hexes(page.evaluate(COLOURS, "h5"))[1]
    assert (contrast(paper, "#FFFFFF") > 10) == dark


@pytest.mark.parametrize("width", [1440, 900, 420])
@pytest.mark.parametrize("path", ["", "ledger", "steps", "definitions"])
def test_nothing_is_pushed_out_of_the_window(look, server, run, tmp_path, width, path):
    page = look(f"{server}/{path}?run={run.run_id}", width=width)
    if path in ("ledger", "steps"):
        ready(page)
    elif path == "":
        expect(page.get_by_role("link", name="llama-70b v5p").first).to_be_visible()
    else:
        expect(page.get_by_text("How a number is known")).to_be_visible()
    page.screenshot(path=tmp_path / f"{path or 'library'}-{width}.png")
    needed, there = page.evaluate(INSIDE)
    assert needed <= there
    assert page.evaluate(CUT) == []


def test_figures_can_be_taken_away(visit, server, run):
    page = visit(f"{server}/ledger?run={run.run_id}")
    ready(page)
    for button, ending, starts in (
        ("CSV", ".csv", b"path,depth,account"),
        ("Parquet", ".parquet", b"PAR1"),
        ("Figure as HTML", ".html", b"<!doctype html>"),
    ):
        with page.expect_download() as waiting:
            page.get_by_role("button", name=button, exact=True).click()
        assert waiting.value.suggested_filename.endswith(ending)
        with open(waiting.value.path(), "rb") as f:
            assert f.read(len(starts)) == starts
