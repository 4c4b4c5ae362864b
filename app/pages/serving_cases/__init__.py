"""Serving cases: Worked examples: measured beside modelled."""

from app.menu import Page

SERVING_CASES = Page(
    name="serving_cases",
    title="Serving cases",
    icon=":material/cases:",
    asks="Worked examples: measured beside modelled.",
    file="pages/serving_cases/page.py",
    in_menu=True,
)
