"""Perfetto's own pages in a browser: they open a run's timeline, and nothing that they ask for elsewhere goes out."""

import pytest
from playwright.sync_api import expect

from app.timeline.perfetto.bundled import folder

pytestmark = pytest.mark.skipif(folder() is None, reason="needs Perfetto's pages: pip install 'chipledger[perfetto]'")


def test_a_runs_timeline_opens_there_and_no_request_leaves(browser, demo, runs):
    name = "reference-pytorch"
    context = browser.new_context()
    outside: list[str] = []

    def gate(route) -> None:
        if route.request.url.startswith((f"{demo}/", "blob:", "data:")):
            route.continue_()
        else:
            outside.append(route.request.url)
            route.abort()

    context.route("**/*", gate)
    page = context.new_page()
    page.goto(f"{demo}/perfetto/open?run={runs[name]}&start=0&end=50000000000")
    expect(page.get_by_text(name, exact=True).first).to_be_visible(timeout=120_000)
    assert page.url.startswith(f"{demo}/perfetto/#!/viewer")
    expect(page.get_by_text("This site uses cookies")).to_have_count(0)
    context.close()
    assert outside == []
