"""History: How did a metric go over the runs of a job, and where did it change for good?"""

from analyzers.history_of_metric.terms import TERMS
from app.menu import Page

HISTORY = Page(
    name="history",
    title="History",
    icon=":material/show_chart:",
    asks="How did a metric go over the runs of a job, and where did it change for good?",
    file="pages/history/page.py",
    in_menu=True,
    terms=TERMS,
)
