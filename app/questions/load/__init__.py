"""Load: How much load does it bear, at what latency and cost?"""

from analyzers.serving import load as analyzer
from analyzers.serving.load.terms import TERMS
from app.questions.base import Question
from app.questions.load import words

LOAD = Question(
    name="load",
    title="Load",
    icon=":material/trending_up:",
    asks="How much load does it bear, at what latency and cost?",
    file="questions/load/page.py",
    key="b",
    about={"serving": ("requests", "stages")},
    inputs=("stages", "requests"),
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
