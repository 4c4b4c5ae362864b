"""Promises: Did mending give what was said?"""

from app.menu import Page

PROMISES = Page(
    name="promises",
    title="Promises",
    icon=":material/handshake:",
    asks="Did mending give what it was said to give?",
    file="pages/promises/page.py",
    in_menu=True,
)
