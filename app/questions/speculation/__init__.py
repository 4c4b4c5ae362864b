"""Speculation: Does drafting tokens ahead pay?"""

from analyzers.serving import speculation as analyzer
from analyzers.serving.speculation.terms import TERMS
from app.questions.base import Question
from app.questions.speculation import words

SPECULATION = Question(
    name="speculation",
    title="Speculation",
    icon=":material/bolt:",
    asks="Does drafting tokens ahead pay?",
    file="questions/speculation/page.py",
    about={"serving": ("engine", "iterations", "requests", "stages")},
    inputs=("engine", "iterations"),
    explains={
        "rejected_speculation": "Whether drafting pays",
    },
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
