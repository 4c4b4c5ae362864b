"""Objectives: Which requests came in time, and why not the others?"""

from analyzers.serving import objectives as analyzer
from analyzers.serving.objectives_terms import TERMS
from app.questions.base import Question
from app.questions.objectives import words

OBJECTIVES = Question(
    name="objectives",
    title="Objectives",
    icon=":material/flag:",
    asks="Which requests came in time, and why not the others?",
    aliases=("slo",),
    file="questions/objectives/page.py",
    key="j",
    about={"serving": ("requests", "histograms")},
    inputs=("requests", "iterations"),
    explains={
        "missed_objective": "Which requests came too late, and why",
    },
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
