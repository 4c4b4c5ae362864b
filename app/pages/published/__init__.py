"""Published runs: How well do others use their chips?"""

from app.menu import Page

PUBLISHED = Page(
    name="published",
    title="Published runs",
    icon=":material/scatter_plot:",
    asks="How well do others use their chips?",
    file="pages/published/page.py",
    in_menu=True,
)
