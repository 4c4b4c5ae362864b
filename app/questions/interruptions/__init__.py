"""Interruptions: What stopped the job, at what cost?"""

from analyzers.lost import interruptions as analyzer
from analyzers.lost.interruptions.terms import TERMS
from app.questions.base import Question
from app.questions.interruptions import words

INTERRUPTIONS = Question(
    name="interruptions",
    title="Interruptions",
    icon=":material/crisis_alert:",
    asks="What stopped the job, at what cost?",
    file="questions/interruptions/page.py",
    key="i",
    about={"job": ()},
    inputs=("lifecycle", "steps", "evidence"),
    explains={
        "infrastructure_recovery": "What stopped the job, why, and what followed",
        "wasted_progress": "Which interruptions lost these steps, and why",
    },
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
