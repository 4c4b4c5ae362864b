"""Checkpoint planner: How often should a job save?"""

from app.menu import Page
from simulators.checkpointing_terms import TERMS

CHECKPOINT_PLANNER = Page(
    name="checkpoint_planner",
    title="Checkpoint planner",
    icon=":material/save:",
    asks="How often should a job save?",
    file="pages/checkpoint_planner/page.py",
    in_menu=True,
    terms=TERMS,
)
