"""Hangs: Which rank did not enter which collective?"""

from analyzers.ranks import blocked as analyzer
from analyzers.ranks.blocked.terms import TERMS
from app.questions.base import Question
from app.questions.hangs import words

HANGS = Question(
    name="hangs",
    title="Hangs",
    icon=":material/front_hand:",
    asks="Which rank did not enter which collective, and who waits for whom?",
    file="questions/hangs/page.py",
    key="h",
    about={"job": ("group_progress",)},
    inputs=("group_progress",),
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
