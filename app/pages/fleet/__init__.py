"""Fleet: What did all runs together hold, cost and lose, and whose are they?"""

from analyzers.fleet.terms import TERMS
from app.menu import Page

FLEET = Page(
    name="fleet",
    title="Fleet",
    icon=":material/stacked_bar_chart:",
    asks="What did all runs together hold, cost and lose, and whose are they?",
    file="pages/fleet/page.py",
    in_menu=True,
    terms=TERMS,
)
