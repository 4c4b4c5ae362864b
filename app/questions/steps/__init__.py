"""Steps: How long did each step take, and which were kept?"""

from analyzers.time import steps as analyzer
from analyzers.time.steps_terms import TERMS
from app.questions.base import Question
from app.questions.steps import words

STEPS = Question(
    name="steps",
    title="Steps",
    icon=":material/show_chart:",
    asks="How long did each step take, and which were kept?",
    file="questions/steps/page.py",
    key="s",
    about={"job": ()},
    inputs=("steps", "lifecycle", "captures"),
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
