"""The docs in a browser: from each page to its own page of them, in the browser's colours, alone on this machine."""

import re

import pytest
from playwright.sync_api import expect

from analyzers.flops.mxu import padded_flops
from app.manual import SITE
from app.manual.site_files import build
from app.questions.mfu import MFU
from app.theme import contrast
from tests.browser.test_look import hexes

SHAPE = {"m": 100, "k": 64, "n": 300}
COLOURS = """() => [getComputedStyle(document.querySelector('.md-typeset')).color,
  getComputedStyle(document.body).backgroundColor]"""


@pytest.fixture(scope="module", autouse=True)
def built():
    """`make test` has built it; whoever runs this file alone may not have."""
    if not (SITE / "index.html").is_file():
        assert build() == 0


def refused(page) -> list[str]:
    """What the console says of the policy from now on."""
    told: list[str] = []
    page.on("console", lambda m: told.append(m.text) if "Content Security Policy" in m.text else None)
    return told


def test_a_page_leads_to_its_own_page_of_the_docs(visit, server, run):
    page = visit(f"{server}/mfu?run={run.run_id}")
    told = refused(page)
    link = page.get_by_role("link", name="Docs", exact=True)
    expect(link).to_be_visible()
    link.click()
    expect(page).to_have_url(re.compile(r"/docs/questions/mfu/$"))
    expect(page.get_by_role("heading", level=1)).to_contain_text(MFU.title)
    expect(page.get_by_text(MFU.asks).first).to_be_visible()
    picture = page.locator("article img").first
    assert picture.evaluate("(image) => image.decode().then(() => image.naturalWidth)") > 600
    page.get_by_role("link", name="Chipledger").first.click()
    expect(page).to_have_url(f"{server}/")
    assert told == []


@pytest.mark.parametrize("width", [1440, 900])
def test_the_link_stands_clear_of_the_menu(look, server, run, width):
    page = look(f"{server}/ledger?run={run.run_id}", width=width)
    link = page.get_by_role("link", name="Docs", exact=True)
    expect(link).to_be_visible()
    box = link.bounding_box()
    for other in page.locator("[data-testid=stTopNav] .rc-overflow-item:visible").all():
        there = other.bounding_box()
        assert there is None or there["x"] + there["width"] <= box["x"] or there["width"] == 0
    assert box["x"] + box["width"] <= width


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_reads_in_the_colours_that_the_browser_asks_for(look, server, tmp_path, dark):
    page = look(f"{server}/docs/numbers/", dark=dark)
    expect(page.get_by_role("heading", name="How a number is known")).to_be_visible()
    text, paper = hexes(page.evaluate(COLOURS))
    assert contrast(text, paper) >= 4.5
    assert (contrast(paper, "#FFFFFF") > 10) == dark
    page.screenshot(path=tmp_path / f"docs-{'dark' if dark else 'light'}.png")


def test_its_search_finds_what_is_asked(visit, server):
    page = visit(f"{server}/docs/")
    told = refused(page)
    page.get_by_role("textbox", name="Search").click()
    page.keyboard.type("straggler wait")
    expect(page.locator(".md-search-result__item").first).to_be_visible()
    assert told == []


@pytest.mark.parametrize("side", [128, 256])
def test_a_shape_of_ones_own_goes_through_the_matrix_unit(visit, server, side):
    shape = "&".join(f"{name}={value}" for name, value in SHAPE.items())
    page = visit(f"{server}/docs/explained/matrix-unit/?{shape}&side={side}")
    told = refused(page)
    said = page.locator(".matrix-unit .said")
    m, k, n = SHAPE.values()
    padding = 1 - 2 * m * k * n / float(padded_flops(m, k, n, side).headline)
    expect(said).to_contain_text(f"{padding * 100:.3g} % of the multiplications are padding")
    expect(page.locator(".matrix-unit svg rect")).to_have_count(4)
    page.get_by_label("k (summed over)").fill("4096")
    padding = 1 - 2 * m * 4096 * n / float(padded_flops(m, 4096, n, side).headline)
    expect(said).to_contain_text(f"{padding * 100:.3g} % of the multiplications are padding")
    expect(page).to_have_url(re.compile(r"k=4096"))
    page.get_by_label("k (summed over)").fill("-3")  # none: the one before stays
    expect(said).to_contain_text(f"{padding * 100:.3g} % of the multiplications are padding")
    assert told == []
