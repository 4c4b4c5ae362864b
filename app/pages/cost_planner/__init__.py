"""Cost planner: How many days and dollars?"""

from app.menu import Page
from simulators.training.terms import TERMS

COST_PLANNER = Page(
    name="cost_planner",
    title="Cost planner",
    icon=":material/payments:",
    asks="How many days and dollars does a training job take?",
    file="pages/cost_planner/page.py",
    in_menu=True,
    terms=TERMS,
)
