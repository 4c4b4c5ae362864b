"""A or B: What changed from one run to another, and is it worse?"""

from analyzers.difference.terms import TERMS as JOB_TERMS
from analyzers.serving.ab_terms import TERMS
from app.menu import Page

COMPARE = Page(
    name="compare",
    title="A or B",
    icon=":material/compare_arrows:",
    asks="What changed from one run to another, and is it worse?",
    file="pages/compare/page.py",
    about={"serving": ("requests",), "job": ("steps",), "compiled": ("ops",)},
    terms=(*JOB_TERMS, *TERMS),
)
MODEL = "~model"  # in the address, in place of B: what the model of training says
