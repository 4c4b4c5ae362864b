"""Slowdown: What would even ranks and stages bring to a pipeline?"""

from analyzers.ranks import slowdown as analyzer
from analyzers.ranks.slowdown.terms import TERMS
from app.questions.base import Question
from app.questions.slowdown import words

SLOWDOWN = Question(
    name="slowdown",
    title="Slowdown",
    icon=":material/timer:",
    asks="What would even ranks and stages bring to a pipeline?",
    file="questions/slowdown/page.py",
    about={"job": ("pipeline",)},
    inputs=("pipeline",),
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
