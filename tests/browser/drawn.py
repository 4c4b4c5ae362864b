"""What plotly drew, read back from the page."""

import re

from playwright.sync_api import Page, expect

DATA = """() => { const g = document.querySelectorAll('.js-plotly-plot')[0];
  return [...g.data[0].customdata].map((path, i) => ({path, i})) }"""


def ready(page: Page) -> None:
    """Waits for the marks of a figure and for the end of the script: until then a figure may be drawn anew."""
    page.wait_for_function("() => document.querySelectorAll('.js-plotly-plot .points .point').length > 0")
    settled(page)


def settled(page: Page) -> None:
    """Waits until the page is whole: what is clicked while it is drawn may move, and something else be hit."""
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")


def click_bar(page: Page, path: str) -> None:
    """A person's click on the bar of an account: at its middle, through plotly's own layer for the mouse."""
    ready(page)
    number = next(d["i"] for d in page.evaluate(DATA) if d["path"] == path)
    bar = page.locator(".js-plotly-plot").first.locator(".points .point path").nth(number)
    bar.scroll_into_view_if_needed()
    box = bar.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def bars(page: Page) -> list[str]:
    ready(page)
    return [d["path"] for d in page.evaluate(DATA)]


def wait_for_bars(page: Page, *first: str) -> None:
    """Waits until the figure begins with these bars: the address changes before the figure is drawn anew."""
    page.wait_for_function(
        """first => { const g = document.querySelectorAll('.js-plotly-plot')[0];
        return g && g.data && first.every((path, i) => g.data[0].customdata[i] === path) }""",
        arg=list(first),
    )


def shown_titles(page: Page) -> list[str]:
    ready(page)
    return page.locator(".js-plotly-plot").first.locator(".ytick text, .bartext").all_text_contents()


def drawn(page: Page) -> str:
    """The verdict, once a figure stands below it."""
    page.wait_for_selector(".js-plotly-plot .main-svg")
    expect(page.locator("h5").first).to_contain_text(re.compile(r"\w"))
    expect(page.get_by_text("Traceback")).to_have_count(0)
    return page.locator("h5").first.inner_text()
