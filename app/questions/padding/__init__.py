"""Padding: How much of the matrix unit's work is padding?"""

from analyzers.flops import padding as analyzer
from analyzers.flops.padding_terms import TERMS
from app.questions.base import Question
from app.questions.padding import words

PADDING = Question(
    name="padding",
    title="Padding",
    icon=":material/select_all:",
    asks="How much of the matrix unit's work is padding?",
    file="questions/padding/page.py",
    key="p",
    about={"job": (), "serving": ("ops",), "compiled": ()},
    inputs=("captures",),
    explains={
        "padding": "Which matrix products pad, and which dimension would pay most",
    },
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
