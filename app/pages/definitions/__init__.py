"""Definitions: What each account, each mark and each name means."""

from app.menu import Page

DEFINITIONS = Page(
    name="definitions",
    title="Definitions",
    icon=":material/menu_book:",
    asks="What each account, each mark and each name means.",
    file="pages/definitions/page.py",
    key="d",
    in_menu=True,
)
