"""The timeline in a browser: it draws, comes closer, tells what is under the pointer, finds, and stays where it is."""

import re

import pytest
from playwright.sync_api import expect

from runs.store import Store
from tests.app import made_runs
from tests.app.serving import get
from tests.browser.drawn import settled

INK = """canvas => { const g = canvas.getContext('2d'), {width, height} = canvas;
  const d = g.getImageData(Math.round(width * 0.25), 40, Math.round(width * 0.7), height - 60).data; let n = 0;
  for (let i = 3; i < d.length; i += 4) n += d[i] > 40; return n }"""


@pytest.fixture(scope="module")
def served(demo, runs):
    return demo, runs


def drawn(page) -> int:
    """Pixels of marks, once there are some, and sharp."""
    settled(page)
    expect(page.locator(".timeline .stage")).to_have_attribute("aria-busy", "false")
    canvas = page.locator(".timeline .picture")
    page.wait_for_function(f"canvas => ({INK})(canvas) > 2000", arg=canvas.element_handle())
    return canvas.evaluate(INK)


@pytest.mark.parametrize("dark", [False, True])
def test_a_wheel_comes_closer_and_a_click_tells_what_an_event_is(served, visit, dark):
    address, runs = served
    run = next(run for name, run in runs.items() if "pytorch" in name)
    page = visit(f"{address}/timeline?run={run}", dark=dark)
    drawn(page)
    canvas = page.locator(".timeline .picture")
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


def test_what_a_job_calls_its_events_is_text(server, store, visit):
    hostile = "<img src=x onerror=alert(1)>" + "n" * 10_000
    lifecycle = {"kind": ["custom"], "start_ns": [1_760_000_000_000_000_000], "end_ns": [1_760_000_001_000_000_000]}
    run = made_runs.write(Store(store), "hostile", {"lifecycle": lifecycle | {"detail": [hostile]}}, {})
    page = visit(f"{server}/timeline?run={run.run_id}")
    drawn(page)
    box = page.locator(".timeline .picture").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.6, box["y"] + 26 + 22 + 7)
    expect(page.locator(".timeline .card")).to_contain_text("<img src=x onerror=alert(1)>")
    assert page.locator(".timeline img").count() == 0


def opened(served, visit, name: str = "pytorch"):
    address, runs = served
    run = next(run for found, run in runs.items() if name in found)
    page = visit(f"{address}/timeline?run={run}")
    drawn(page)
    return page, address, run


def test_a_stretch_is_selected_by_a_drag_with_shift_and_stands_in_the_address(served, visit):
    page, address, run = opened(served, visit)
    page.locator(".timeline .picture").scroll_into_view_if_needed()
    box = page.locator(".timeline .picture").bounding_box()
    window = page.locator(".timeline .where").inner_text()
    page.mouse.move(box["x"] + 400, box["y"] + 60)
    page.keyboard.down("Shift")
    page.mouse.down()
    page.mouse.move(box["x"] + 600, box["y"] + 120, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    page.wait_for_function("() => /pick=\\d+-\\d+/.test(location.search)")
    [(start, end)] = [(int(a), int(b)) for a, b in re.findall(r"pick=(\d+)-(\d+)", page.url)]
    assert 0 < end - start < 2_390_000_000_000
    asked = f"{address}/api/runs/{run}/timeline/selection?start={start}&end={end}"
    panel = page.locator(".timeline .picked")
    if get(asked)[0] == 200:
        expect(panel).to_contain_text(re.compile(r"[\d,]+ events in the \d+ rows it spans"))
    else:
        expect(panel).to_be_hidden()
    expect(page.locator(".timeline .where")).to_have_text(window)
    page.locator(".timeline .stage").press("Escape")
    page.wait_for_function("() => !/pick=/.test(location.search)")
    expect(panel).to_be_hidden()


def test_a_pinned_lane_stays_where_others_scroll(served, visit):
    page, _, _ = opened(served, visit)
    stage = page.locator(".timeline .stage")
    pin = page.get_by_role("button", name=re.compile("Keep .* on top")).nth(3)
    name = pin.get_attribute("aria-label").removeprefix("Keep ").removesuffix(" on top")
    pin.press("Enter")
    page.wait_for_function("() => /pins=\\d/.test(location.search)")
    kept = page.get_by_role("button", name=f"Keep {name} on top")
    expect(kept).to_have_attribute("aria-pressed", "true")

    def top() -> float:
        return kept.bounding_box()["y"] - stage.bounding_box()["y"]

    before = top()
    page.locator('.timeline .fold[aria-expanded="false"]').first.press("Enter")
    stage.evaluate("stage => stage.scrollTo(0, 1e9)")
    drawn(page)
    assert stage.evaluate("stage => stage.scrollTop") > 0
    assert top() == before
    page.reload()
    drawn(page)
    expect(page.get_by_role("button", name=f"Keep {name} on top")).to_have_attribute("aria-pressed", "true")


def test_the_window_is_moved_by_keys_and_told_to_who_does_not_see_it(served, visit):
    page, _, _ = opened(served, visit)
    stage, live = page.locator(".timeline .stage"), page.locator(".timeline .live")
    expect(live).to_contain_text("The window shows 2.39 s")
    stage.press("w")
    expect(live).to_contain_text("The window shows 1.8 s")
    whole = page.locator(".timeline .overview")
    at = whole.get_attribute("aria-valuenow")
    whole.press("ArrowRight")
    expect(whole).not_to_have_attribute("aria-valuenow", at)
    page.locator(".timeline .q").focus()
    seen = []
    for _ in range(9):
        page.keyboard.press("Tab")
        seen.append(whole.evaluate("canvas => { const on = canvas.getRootNode().activeElement; return on.className }"))
    assert seen == ["step", "order", "clocks", "colours", "fit", "mark", "png", "overview", "stage"]
    assert stage.evaluate("stage => getComputedStyle(stage).outlineStyle") == "solid"


def test_a_server_that_is_gone_is_one_sentence_and_the_picture_comes_again(served, visit):
    page, _, _ = opened(served, visit)
    page.route("**/timeline/tiles?*", lambda route: route.abort())
    stage, said = page.locator(".timeline .stage"), page.locator(".timeline .said")
    for _ in range(8):
        stage.press("w")
    expect(said).to_have_text("The timeline cannot be drawn: the server does not answer")
    page.unroute("**/timeline/tiles?*")
    stage.press("d")
    expect(said).to_be_hidden()
    expect(stage).to_have_attribute("aria-busy", "false")


def test_a_million_rows_scroll_to_the_last_and_ticks_beyond_what_floats_hold_are_asked_in_full(served, visit):
    address, runs = served
    run = next(run for name, run in runs.items() if "pytorch" in name)
    of, asked = get(f"{address}/api/runs/{run}/timeline")[1], []
    of["lanes"][-1] |= {"rows": 1_000_000, "group": "device"}
    of["span_ticks"] = 1 << 61
    context = visit("about:blank")
    context.route(f"**/api/runs/{run}/timeline", lambda route: route.fulfill(json=of))
    context.on("request", lambda request: asked.append(request.url) if "/tiles?" in request.url else None)
    context.goto(f"{address}/timeline?run={run}")
    stage = context.locator(".timeline .stage")
    expect(stage).to_have_attribute("aria-busy", re.compile("true|false"))
    stage.evaluate("stage => stage.scrollTo(0, 1e9)")
    last = of["lanes"][-1]["row"] + 999_999
    root = context.locator(".timeline")
    context.wait_for_function(
        "([root, last]) => root.viewer.seen.at(-1).row === last", arg=[root.element_handle(), last]
    )
    assert stage.evaluate("stage => stage.scrollHeight") <= 8_000_000
    assert asked and all(re.search(r"start=-?\d+&end=\d+&pixels=\d+&rows=[\d,-]+&", url) for url in asked)


def shown(page, mark: str) -> tuple[float, float]:
    """Where on the page the middle of a mark is: `mark` is JavaScript for its number, of the tile `t` that is held."""
    page.locator(".timeline .picture").scroll_into_view_if_needed()
    return page.locator(".timeline").evaluate(f"""root => {{ const v = root.viewer, t = v.held.tile, i = {mark};
        const tick = t.start + (t.begin[i] + t.width[i] / 2) * t.unit, box = v.canvas.getBoundingClientRect();
        const line = v.seen.find(one => one.row === v.held.rows[t.row[i]]);
        return [box.left + 210 + (tick - v.from) / (v.to - v.from) * v.wide, box.top + line.top + 8] }}""")


def test_a_hover_tells_how_long_an_event_took_and_not_how_wide_it_is_drawn(served, visit):
    page, _, _ = opened(served, visit)
    seen = "new Set(v.seen.filter(line => line.top < 250).map(line => line.row))"
    wide = "t.width[i] * t.unit > 3 * t.dur[i]"
    mark = f"""(rows => t.row.findIndex((row, i) => t.count[i] === 1 && t.begin[i] > 0 && {wide}
        && rows.has(v.held.rows[row])))({seen})"""
    page.mouse.move(*(at := shown(page, mark)))
    tip, card = page.locator(".timeline .tip"), page.locator(".timeline .card")
    expect(tip).to_be_visible()
    page.mouse.click(*at)
    expect(card).to_contain_text("Took")
    took = card.locator("dd").first.inner_text().split(",")[0]
    assert re.search(rf"(: |, ){re.escape(took)}(,|$)", tip.inner_text())


def test_an_answer_that_comes_after_the_page_was_left_writes_nothing_into_its_address(served, visit):
    page, _, _ = opened(served, visit)
    page.evaluate("""() => { const ask = window.fetch;
        window.late = new Promise(done => { window.fetch = async (u, o) => {
        if (!String(u).includes('/timeline/event')) return ask(u, o);
        await new Promise(go => { window.go = go }); setTimeout(done, 1000); return ask(u, o) } }) }""")
    page.locator(".timeline").evaluate("root => { root.viewer.choice.open(0); window.old = root }")
    page.get_by_role("navigation", name="Pages about this run").get_by_role("button", name="Time", exact=True).click()
    page.get_by_role("link", name="Goodput").click()
    page.wait_for_function("() => !/timeline/.test(location.pathname)")
    page.evaluate("() => { old.viewer.look(5, 1e6); old.viewer.picked.clear(); go(); return late }")
    assert not re.search(r"[?&](from|to|at)=", page.url)


def test_the_rows_of_a_selection_stand_in_the_address_and_are_read_from_it(served, visit):
    page, _, _ = opened(served, visit)
    page.locator(".timeline").evaluate(
        "root => { root.viewer.picked.set(1e11, 2e11, [1, 2, 3, 6]); root.viewer.picked.settle() }"
    )
    page.wait_for_function("() => new URLSearchParams(location.search).get('pick_rows') === '1-3,6'")
    page.reload()
    drawn(page)
    expect(page.locator(".timeline .sum-note")).to_contain_text("events in the 4 rows it spans")
    assert "pick_rows=1-3%2C6" in page.url
