"""Goodput planner: What share of its time will a job keep?"""

from app.menu import Page
from simulators.training.life_terms import TERMS

GOODPUT_PLANNER = Page(
    name="goodput_planner",
    title="Goodput planner",
    icon=":material/heart_check:",
    asks="What share of its time will a job keep when chips fail?",
    file="pages/goodput_planner/page.py",
    in_menu=True,
    terms=TERMS,
)
