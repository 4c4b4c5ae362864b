"""The topology lab in a browser: worked examples, the permalink, the dark page."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.drawn import drawn

EXAMPLES = (
    ("1,024 chips: 16 against 7 hops", "at most 16 hops, 8.01 on average", "boardfly:1024: at most 7 hops, 4.62"),
    ("16x8x4: 512 chips in 8 cubes", "512 chips, TPU v5p 4x8x16, a torus of 8 cubes", "at most 14 hops"),
    ("An Ironwood pod: 9,216 chips", "9,216 chips, TPU 7x 16x24x24, a torus of 144 cubes", "at most 32 hops"),
    ("A 2x2x4 job", "16 chips, TPU v5p 2x2x4, a mesh", "a dimension under 4 has no optical wrap"),
    ("50,944 chips in 199 pods", "50,944 chips, 199 slices of TPU v5e 16x16", "99.5 % of all pairs"),
)


def verdict(page: Page, *parts: str) -> None:
    """Its first part stands in the head, the others there or below the pictures."""
    first, *others = parts
    expect(page.locator("h5").first).to_contain_text(first)
    for part in others:
        expect(page.get_by_test_id("stMain")).to_contain_text(part)


def test_the_worked_examples_one_after_another(visit, demo):
    page = visit(f"{demo}/topology")
    verdict(page, "128 chips, TPU v5p 4x4x8, a torus of 2 cubes: at most 8 hops, 4.03 on average")
    for title, *parts in EXAMPLES:
        page.get_by_role("button", name=title).click()
        verdict(page, *parts)
        if title == EXAMPLES[0][0]:  # the one shown, and all three small beside each other
            expect(page.locator(".picture")).to_have_count(4)
    expect(page.get_by_text("Traceback")).to_have_count(0)


@pytest.mark.parametrize("dark", [False, True])
def test_a_permalink_opens_what_was_chosen(visit, demo, dark):
    page = visit(f"{demo}/topology?spec=v5p:4x4x4", dark=dark)
    verdict(page, "64 chips")
    field = page.get_by_role("textbox", name="or any topology by name")
    field.fill("boardfly:64")
    field.press("Enter")
    verdict(page, "64 chips, a Boardfly of 2 groups")
    page.get_by_text("Compare", exact=True).click()
    expect(page).to_have_url(re.compile(r"show=compare"))
    again = visit(page.url, dark=dark)
    assert "a Boardfly of 2 groups" in drawn(again)
    expect(again.get_by_text("Add a topology to compare this one with.")).to_be_visible()


def test_a_topology_that_cannot_be_is_told_and_the_chooser_stays(visit, demo):
    page = visit(f"{demo}/topology?spec=v5e:3x5")
    expect(page.get_by_test_id("stAlert").first).to_contain_text("v5e")
    page.get_by_role("button", name="A 2x2x4 job").click()
    verdict(page, "16 chips, TPU v5p 2x2x4, a mesh")
