"""Two runs above one another in a browser: they are looked at together, each by its own nanoseconds."""

import re

import pytest
from playwright.sync_api import expect

from runs.store import Store
from tests.app import made_runs
from tests.browser.drawn import settled

S = 1_000_000_000
LATER = 90_000


@pytest.fixture(scope="module")
def both(server, store, run):
    steps = made_runs.step_columns([30 * S, *[10 * S] * 59], made_runs.START_NS + LATER * S)
    second = made_runs.write(Store(store), "<i>second</i>", {"steps": steps}, {})
    return f"{server}/timeline?run={run.run_id}", run, second


SHARP = "() => [...roots()].length === 2 && [...roots()].every(r => r.querySelector('.stage').ariaBusy === 'false')"
ROOTS = """window.roots = () => { const found = [], walk = node => { for (const one of node.querySelectorAll('*')) {
    if (one.matches('.timeline')) found.push(one); if (one.shadowRoot) walk(one.shadowRoot) } };
    walk(document); return found }"""


def paired(page):
    settled(page)
    page.evaluate(ROOTS)
    page.wait_for_function(SHARP)
    page.wait_for_function("() => roots()[0].viewer.pair && roots()[0].viewer.of && roots()[1].isConnected")
    return page


def windows(page) -> list[list[float]]:
    """Of both runs where they look, in seconds since 1970."""
    return page.evaluate("""() => { const p = roots()[0].viewer.pair; return [p.first, p.second].map(
        v => [v.from, v.to].map(t => v.of.origin_ns / 1e9 + t * v.of.tick_ps / 1e12)) }""")


def aligned(page, step_a: float, step_b: float) -> None:
    """Both look as far before and behind the step."""
    (a, b), (c, d) = windows(page)
    begin = made_runs.START_NS / S
    assert a - begin - step_a == pytest.approx(c - begin - step_b, abs=1e-3)
    assert b - a == pytest.approx(d - c, rel=1e-9)


def test_zoom_and_drag_move_both_and_the_address_leads_back(both, visit):
    address, _, second = both
    page = paired(visit(f"{address}&with={second.run_id}"))
    text = page.locator(".aligned").first
    expect(text).to_have_text(
        "Both lie over one another at the beginning of step 1, the first settled step that both have."
    )
    aligned(page, 380, LATER + 30)
    whole = windows(page)
    stages = page.locator(".timeline .stage")
    stages.nth(1).press("w")
    aligned(page, 380, LATER + 30)
    stages.nth(0).press("d")
    aligned(page, 380, LATER + 30)
    (a, b), _ = windows(page)
    assert b - a == pytest.approx(0.75 * (whole[0][1] - whole[0][0]), rel=1e-6)
    page.wait_for_function("() => /from=/.test(location.search)")
    page.wait_for_timeout(400)
    there, url = windows(page), page.url
    assert "b_from" not in url
    page = paired(visit(url))
    assert windows(page) == [pytest.approx(one, abs=1e-3) for one in there]


def test_a_step_lays_both_over_one_another_and_one_that_either_lacks_is_told(both, visit):
    address, _, second = both
    page = paired(visit(f"{address}&with={second.run_id}"))
    box = page.get_by_label("Go to step", exact=True)
    box.fill("40")
    box.press("Enter")
    expect(page.locator(".aligned").first).to_contain_text("step 40")
    aligned(page, 300 + 80 + 39 * 20, LATER + 30 + 39 * 10)
    assert "beside_step=40" in page.url
    before = windows(page)
    box.fill("200")
    box.press("Enter")
    expect(page.locator(".said").first).to_contain_text("Run B, <i>second</i>: no step 200")
    assert windows(page) == before
    page = paired(visit(page.url))
    aligned(page, 300 + 80 + 39 * 20, LATER + 30 + 39 * 10)


def test_what_is_hovered_and_clicked_says_of_which_run_and_names_are_text(both, visit):
    address, _, second = both
    page = paired(visit(f"{address}&with={second.run_id}&from=0&to=600000000000000"))
    expect(page.locator(".which")).to_have_text(["Run A, llama-70b v5p", "Run B, <i>second</i>"])
    assert page.locator(".timeline i").count() == 0
    at = page.evaluate("""() => { const v = roots()[0].viewer.pair.second, t = v.held.tile;
        const i = t.count.findIndex((n, k) => n === 1 && t.width[k] > 50), b = v.canvas.getBoundingClientRect();
        v.stage.scrollIntoView({ block: 'center' }); const box = v.canvas.getBoundingClientRect();
        const tick = t.start + (t.begin[i] + t.width[i] / 2) * t.unit;
        const line = v.seen.find(one => one.row === v.held.rows[t.row[i]]);
        return [box.left + 210 + (tick - v.from) / (v.to - v.from) * v.wide, box.top + line.top + 8] }""")
    page.mouse.move(*at)
    expect(page.locator(".tip").nth(1)).to_contain_text("Run B, <i>second</i>. ")
    page.mouse.click(*at)
    card = page.locator(".card").nth(1)
    expect(card).to_contain_text(re.compile("Run.*Run B, <i>second</i>", re.DOTALL))
    page.wait_for_function("() => /b_at=\\d/.test(location.search)")
    assert not re.search(r"[?&]at=", page.url)
    name = page.locator(".other .stage").get_attribute("aria-label")
    assert name.endswith("run B") and name.startswith("Timeline: W and S zoom")


def test_a_second_run_that_goes_meanwhile_leaves_the_first_alive(both, visit):
    address, _, second = both
    page = paired(visit(f"{address}&with={second.run_id}"))
    gone = re.compile(f"/api/runs/{second.run_id}/")
    page.route(gone, lambda route: route.fulfill(status=404, json={"error": "no such run"}))
    for _ in range(14):
        page.locator(".timeline .stage").first.press("w")
    expect(page.locator(".other .said")).to_have_text("The timeline cannot be drawn: no such run")
    expect(page.locator(".timeline .stage").first).to_have_attribute("aria-busy", "false")
    expect(page.locator(".timeline:not(.other) .said")).to_be_hidden()


@pytest.mark.parametrize("dark", [False, True])
def test_colours_of_kinds_are_turned_on_by_a_key_for_both_and_stand_in_the_address(both, visit, dark):
    address, _, second = both
    page = paired(visit(f"{address}&with={second.run_id}", dark=dark))
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "/tiles?" in request.url else None)
    page.locator(".timeline .stage").first.press("c")
    page.wait_for_function("() => /colours=categories/.test(location.search)")
    page.wait_for_function(SHARP)
    for run in both[1:]:
        assert any(run.run_id in url and "colours=categories" in url for url in asked)
    expect(page.get_by_label("Colours", exact=True)).to_have_value("categories")
