"""Many runs: What differs between these runs, and which is better?"""

from analyzers.several.terms import TERMS
from app.menu import Page

SEVERAL = Page(
    name="several",
    title="Many runs",
    icon=":material/stacked_line_chart:",
    asks="What differs between these runs, and which is better?",
    file="pages/several/page.py",
    in_menu=True,
    terms=TERMS,
)
