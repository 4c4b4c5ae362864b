"""Runs: Every run in this store; search, tag, add."""

from app.menu import Page

LIBRARY = Page(
    name="library",
    title="Runs",
    icon=":material/folder_open:",
    asks="Every run in this store; search, tag, add.",
    file="pages/library/page.py",
    key="r",
    in_menu=True,
)
