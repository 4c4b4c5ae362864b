"""The docs as a site: what it is built of, where it lies, and which of its pages tells of a page of the product."""

from pathlib import Path

from app.menu import Page

SITE = Path(__file__).parents[1] / "site"  # built, never committed; of a wheel it is a part
AT = "/docs"  # where the server answers with it
SCRIPTS = "inline-scripts.json"  # of the site: hashes of the scripts that stand in its pages, for the server's policy


def folder(page: Page) -> str:
    """The folder of its page of the docs: questions and other pages stand apart."""
    return "questions" if hasattr(page, "analyze") else "pages"


def address(page: Page) -> str:
    """Where the server answers with what the docs say of a page."""
    return f"{AT}/{folder(page)}/{page.name}/"
