"""Findings: what is wrong with a run, what it costs, and what to do about it."""

from collections.abc import Mapping
from typing import Any

from analyzers import findings as analyzer
from analyzers.base import Facts
from app.questions.base import Question
from app.questions.findings import words
from errors import QuestionError
from runs.tables import Tables


def _alone(tables: Tables, facts: Facts, options: Mapping[str, Any]) -> analyzer.FindingsResult:
    raise QuestionError("findings are about a run", expected="the id or the name of a run, not of a model")


FINDINGS = Question(
    name="findings",
    title="Findings",
    icon=":material/lightbulb:",
    asks="What is wrong with a run, what does it cost, and what is to be done about it?",
    file="questions/findings/page.py",
    key="o",
    about={"job": (), "serving": (), "compiled": ()},
    inputs=("lifecycle", "steps", "captures", "requests"),
    options=analyzer.OPTIONS,
    terms=analyzer.TERMS,
    analyze=_alone,
    join=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
