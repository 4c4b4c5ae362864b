"""A report in a real Chromium, from a file, with the network refused."""

import pytest

from app.reporting.formats import HTML, written
from app.reporting.made import of_run
from app.reporting.writers.pdf import pdf
from app.workspace import workspace
from tests.bundled import bundled

pytestmark = pytest.mark.browser
MOST_BYTES = 5_000_000


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """That of the bundled training run."""
    run = bundled(tmp_path_factory, "training")
    place = workspace(str(run.folder.parent.parent))
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_bytes(written(of_run(run, place), HTML))
    return file


@pytest.mark.parametrize("shade", ["light", "dark"])
def test_it_opens_offline_draws_its_figures_and_asks_for_nothing(browser, report, shade):
    assert report.stat().st_size < MOST_BYTES
    context = browser.new_context(offline=True, color_scheme=shade)
    asked, faults = [], []
    try:
        page = context.new_page()
        page.on("request", lambda r: asked.append(r.url))
        page.on("console", lambda m: faults.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda e: faults.append(str(e)))
        page.goto(report.as_uri())
        page.wait_for_selector("html[data-drawn=yes]", timeout=60_000)
        places = page.locator(".figure")
        assert places.count() >= 4
        assert page.locator("main section").first.locator(".figure .main-svg").count() > 0
        assert page.locator(".figure.failed").count() == 0
        assert page.locator(".figure .bars path, .figure .scatterlayer path, .figure .heatmaplayer image").count() > 10
        page.wait_for_timeout(300)
        assert asked == [report.as_uri()] and not faults
        wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        page.set_viewport_size({"width": 1000, "height": 800})
        assert soon(page, wide)
    finally:
        context.close()


def soon(page, what):
    """Whether it holds within a few seconds: figures follow their page's width a moment later. The file's policy lets
    nothing be waited for inside of it."""
    for _ in range(100):
        if page.evaluate(what):
            return True
        page.wait_for_timeout(100)
    return False


def test_without_javascript_text_and_tables_stand(browser, report):
    context = browser.new_context(offline=True, java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(report.as_uri())
        assert page.locator("table").count() >= 4
        assert page.get_by_text("Figures need JavaScript").is_visible()
        assert page.locator("#findings h3").count() >= 1
    finally:
        context.close()


def test_a_browser_prints_it(browser, report):
    assert pdf(report.read_bytes()).startswith(b"%PDF")
