"""Serving planner: Which setup serves it cheapest?"""

from app.menu import Page
from simulators.serving.terms import TERMS

SERVING_PLANNER = Page(
    name="serving_planner",
    title="Serving planner",
    icon=":material/calculate:",
    asks="Which setup serves it cheapest?",
    file="pages/serving_planner/page.py",
    in_menu=True,
    terms=TERMS,
)
