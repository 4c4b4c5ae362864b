"""Stragglers: Does a rank make the others wait, and why?"""

from analyzers.ranks import stragglers as analyzer
from analyzers.ranks.stragglers.terms import TERMS
from app.questions.base import Question
from app.questions.stragglers import words

STRAGGLERS = Question(
    name="stragglers",
    title="Stragglers",
    icon=":material/directions_run:",
    asks="Does a rank make the others wait, and why?",
    file="questions/stragglers/page.py",
    key="z",
    about={"job": ()},
    inputs=("captures",),
    explains={
        "straggler_wait": "Which rank made the others wait, and why",
    },
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
