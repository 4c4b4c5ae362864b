"""Collectives: Which collectives ran, how fast, and what bounds them?"""

from analyzers.ranks import collectives as analyzer
from analyzers.ranks.collectives_terms import TERMS
from app.questions.base import Question
from app.questions.collectives import words

COLLECTIVES = Question(
    name="collectives",
    title="Collectives",
    icon=":material/hub:",
    asks="Which collectives ran, how fast, and what bounds them?",
    file="questions/collectives/page.py",
    key="a",
    about={"job": (), "serving": ("ops",), "compiled": ()},
    inputs=("captures",),
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
