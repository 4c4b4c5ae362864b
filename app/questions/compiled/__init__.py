"""Compile for TPU: What does the TPU compiler make of a model?"""

from analyzers.compiled import compiled as analyzer
from analyzers.compiled.compiled_terms import TERMS
from app.questions.base import Question
from app.questions.compiled import words

COMPILED = Question(
    name="compiled",
    title="Compile for TPU",
    icon=":material/build:",
    asks="What does the TPU compiler make of a model?",
    file="pages/compile/page.py",
    key="w",
    address="compile",
    in_menu=True,
    about={"compiled": ()},
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
