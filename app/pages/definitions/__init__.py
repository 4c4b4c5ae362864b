"""Definitions: What each account and each mark means."""

from app.menu import Page

DEFINITIONS = Page(
    name="definitions",
    title="Definitions",
    icon=":material/menu_book:",
    asks="What each account and each mark means.",
    file="pages/definitions/page.py",
    in_menu=True,
)
