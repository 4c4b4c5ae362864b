"""Scaling: How well does a job grow with its chips?"""

from app.menu import Page
from simulators.training.terms import SCALING_TERMS

SCALING_PAGE = Page(
    name="scaling",
    title="Scaling",
    icon=":material/trending_up:",
    asks="How well does a job grow with its chips?",
    file="pages/scaling/page.py",
    in_menu=True,
    terms=SCALING_TERMS,
)
