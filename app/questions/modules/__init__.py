"""Modules: Which part of the model takes the time, and which part wastes it?"""

from analyzers.device.modules import modules as analyzer
from analyzers.device.modules.terms import TERMS
from app.questions.base import Question
from app.questions.modules import words

MODULES = Question(
    name="modules",
    title="Modules",
    icon=":material/account_tree:",
    asks="Which part of the model takes the time, and which part wastes it?",
    file="questions/modules/page.py",
    about={"job": ("ops",), "serving": ("ops",), "compiled": ()},
    inputs=("captures",),
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
