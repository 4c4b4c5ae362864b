"""Training planner: Which chips and which layout?"""

from app.menu import Page
from simulators.training.terms import PLAN_TERMS

TRAINING_PLANNER = Page(
    name="training_planner",
    title="Training planner",
    icon=":material/fit_page:",
    asks="Which chips, how many of them and which layout train a model?",
    file="pages/training_planner/page.py",
    in_menu=True,
    terms=PLAN_TERMS,
)
