"""Fingers on the timeline: one draws it along, two pinch, a tap picks, one that rests selects. Sent as a touch screen
sends them."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Watched
from tests.browser.test_timeline import drawn, shown


@pytest.fixture(scope="module")
def address(demo, runs):
    return f"{demo}/timeline?run={runs['reference-pytorch']}"


class Hand:
    """Fingers on a page."""

    def __init__(self, page):
        self.page = page
        self._devtools = page.context.new_cdp_session(page)

    def put(self, *fingers: tuple[float, float], kind: str = "touchMove") -> None:
        points = [{"x": x, "y": y, "id": n} for n, (x, y) in enumerate(fingers)]
        self._devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def down(self, *fingers: tuple[float, float]) -> None:
        self.put(*fingers, kind="touchStart")

    def up(self) -> None:
        self.put(kind="touchEnd")

    def along(self, *ways: tuple[tuple[float, float], tuple[float, float]], steps: int = 6) -> None:
        for n in range(1, steps + 1):
            self.put(*((a + (c - a) * n / steps, b + (d - b) * n / steps) for (a, b), (c, d) in ways))


@pytest.fixture
def hand(browser, address):
    within, watched = browser.new_context(has_touch=True, viewport={"width": 1000, "height": 1100}), Watched()
    page = within.new_page()
    watched.watch(page)
    page.goto(address)
    drawn(page)
    page.locator(".timeline .picture").scroll_into_view_if_needed()
    yield Hand(page)
    within.close()
    watched.check()


def looked(page) -> tuple[float, float]:
    return tuple(page.locator(".timeline").evaluate("root => [root.viewer.from, root.viewer.to]"))


def corner(page) -> tuple[float, float, float]:
    """Left and top of the picture, and how wide its marks' part is."""
    box = page.locator(".timeline .picture").bounding_box()
    return box["x"] + 210, box["y"], box["width"] - 210


def test_two_fingers_pinch_about_the_place_between_them(hand):
    page = hand.page
    left, top, wide = corner(page)
    a, b = looked(page)
    x, y = left + 0.4 * wide, top + 80
    hand.down((x - 40, y), (x + 40, y + 10))
    hand.along(((x - 40, y), (x - 120, y - 20)), ((x + 40, y + 10), (x + 120, y + 30)))
    c, d = looked(page)
    share = (80**2 + 10**2) ** 0.5 / (240**2 + 50**2) ** 0.5
    assert d - c == pytest.approx((b - a) * share, rel=1e-6)
    assert c + 0.4 * (d - c) == pytest.approx(a + 0.4 * (b - a), rel=1e-3)
    hand.up()
    expect(page.locator(".timeline .card")).to_be_hidden()  # two fingers that leave are no tap
    assert looked(page) == (c, d)


def test_one_finger_draws_the_picture_along_and_a_tap_picks(hand):
    page = hand.page
    for _ in range(4):
        page.locator(".timeline .stage").press("w")
    a, b = looked(page)
    left, top, wide = corner(page)
    way = (left + 0.6 * wide, top + 80), (left + 0.6 * wide - 100, top + 82)
    hand.down(way[0])
    hand.along(way)
    hand.up()
    c, d = looked(page)
    assert c - a == pytest.approx((b - a) * 100 / wide, rel=0.2) and d - c == pytest.approx(b - a)
    drawn(page)
    mark = """t.count.findIndex((n, i) => { const span = v.to - v.from, long = t.width[i] * t.unit,
        middle = t.start + t.begin[i] * t.unit + long / 2, row = v.held.rows[t.row[i]];
        return n === 1 && long > span / 40 && middle > v.from + span / 10 && middle < v.to - span / 10
            && v.seen.some(line => line.row === row && line.top < 250) })"""
    at = shown(page, mark)
    hand.down(at)
    hand.up()
    expect(page.locator(".timeline .card")).to_contain_text("Took")


def test_a_finger_that_rests_begins_a_selection(hand):
    page = hand.page
    left, top, wide = corner(page)
    a, b = looked(page)
    way = (left + 0.3 * wide, top + 70), (left + 0.6 * wide, top + 120)
    hand.down(way[0])
    page.wait_for_function("() => document.querySelector('*') && true")
    page.locator(".timeline").evaluate(
        "root => new Promise(done => { const look = () => root.viewer.picked.stretch ? done() : setTimeout(look, 20);"
        " look() })"
    )
    hand.along(way)
    hand.up()
    expect(page.locator(".timeline .picked")).to_contain_text("events in the")
    page.wait_for_function("() => /pick=\\d+-\\d+/.test(location.search)")
    start, end = page.locator(".timeline").evaluate("r => [r.viewer.picked.stretch.from, r.viewer.picked.stretch.to]")
    assert start == pytest.approx(a + 0.3 * (b - a), rel=1e-2) and end == pytest.approx(a + 0.6 * (b - a), rel=1e-2)
    assert looked(page) == (a, b)
