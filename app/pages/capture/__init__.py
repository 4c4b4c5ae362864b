"""Capture: Record running jobs, all hosts at once, into a run."""

from app.menu import Page

CAPTURE = Page(
    name="capture",
    title="Capture",
    icon=":material/radio_button_checked:",
    asks="What does a running job do right now, on all its hosts at once?",
    file="pages/capture/page.py",
    in_menu=True,
)
