"""Ledger: Where did every chip-second of a run go?"""

from analyzers.time import ledger as analyzer
from analyzers.time.ledger_terms import TERMS
from app.questions.base import Question
from app.questions.ledger import words

LEDGER = Question(
    name="ledger",
    title="Ledger",
    icon=":material/account_tree:",
    asks="Where did every chip-second of a run go?",
    file="questions/ledger/page.py",
    key="l",
    about={"job": (), "serving": (), "compiled": ()},
    inputs=("lifecycle", "steps", "captures", "requests"),
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
