"""Memory: What does a device hold when it holds most?"""

from analyzers.device import memory as analyzer
from analyzers.device.memory_terms import TERMS
from app.questions.base import Question
from app.questions.memory import words

MEMORY = Question(
    name="memory",
    title="Memory",
    icon=":material/memory:",
    asks="What does a device hold when it holds most?",
    file="questions/memory/page.py",
    key="y",
    about={"job": (), "serving": ("ops", "memory"), "compiled": ()},
    inputs=("captures",),
    explains={
        "recomputation": "What recomputing saves in memory",
    },
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
