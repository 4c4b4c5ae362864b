"""Checkpoints: What do saves and failures cost, and what would help?"""

from analyzers.lost import checkpoints as analyzer
from app.questions.base import Question
from app.questions.checkpoints import words
from simulators.checkpointing_terms import TERMS

CHECKPOINTS = Question(
    name="checkpoints",
    title="Checkpoints",
    icon=":material/save:",
    asks="What do saves and failures cost, and what would help?",
    file="questions/checkpoints/page.py",
    key="c",
    about={"job": ()},
    inputs=("lifecycle", "steps"),
    explains={
        "checkpoint_save": "How often a save would pay",
        "checkpoint_restore": "What a restart costs, by part, and what would shorten it",
        "program_startup": "What a restart costs, by part, and what would shorten it",
    },
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
