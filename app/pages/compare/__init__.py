"""A or B: Is one served run truly faster than another?"""

from analyzers.serving.ab_terms import TERMS
from app.menu import Page

COMPARE = Page(
    name="compare",
    title="A or B",
    icon=":material/compare_arrows:",
    asks="Is one served run truly faster than another?",
    file="pages/compare/page.py",
    about={"serving": ("requests",)},
    terms=TERMS,
)
