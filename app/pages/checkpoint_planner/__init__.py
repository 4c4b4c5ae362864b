"""Checkpoint planner: How often should a job save?"""

from app.menu import Page

CHECKPOINT_PLANNER = Page(
    name="checkpoint_planner",
    title="Checkpoint planner",
    icon=":material/save:",
    asks="How often should a job save?",
    file="pages/checkpoint_planner/page.py",
    in_menu=True,
)
