"""Goodput: Which part of the time held went into kept steps?"""

from analyzers.lost import goodput as analyzer
from analyzers.lost.goodput.terms import TERMS
from app.questions.base import Question
from app.questions.goodput import words

GOODPUT = Question(
    name="goodput",
    title="Goodput",
    icon=":material/event_available:",
    asks="Which part of the time held went into kept steps?",
    file="questions/goodput/page.py",
    key="g",
    about={"job": ()},
    inputs=("lifecycle", "steps"),
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
