"""Roofline: What binds the operations, compute or memory?"""

from analyzers.device import roofline as analyzer
from analyzers.device.roofline_terms import TERMS
from app.questions.base import Question
from app.questions.roofline import words

ROOFLINE = Question(
    name="roofline",
    title="Roofline",
    icon=":material/stacked_line_chart:",
    asks="What binds the operations, compute or memory?",
    file="questions/roofline/page.py",
    key="f",
    about={"job": (), "serving": ("ops",), "compiled": ()},
    inputs=("captures",),
    explains={
        "below_roofline": "Which operations run below their roof",
    },
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
