"""Heap: Which buffer lives from where to where, and what fills a device at a program's peak?"""

from collections.abc import Mapping
from typing import Any

from analyzers.base import Facts
from analyzers.program import heap as analyzer
from analyzers.program.heap_terms import TERMS
from app.questions.base import Question
from app.questions.heap import words
from errors import QuestionError
from runs.tables import Tables


def _alone(tables: Tables, facts: Facts, options: Mapping[str, Any]) -> analyzer.HeapResult:
    raise QuestionError("programs are kept with a run", expected="the id or the name of a run, not of a model")


HEAP = Question(
    name="heap",
    title="Heap",
    icon=":material/stacked_bar_chart:",
    asks="Which buffer of a program lives from where to where, and which operations allocate most?",
    file="questions/heap/page.py",
    about={"job": ("modules",), "serving": ("modules",)},
    program=True,
    inputs=("modules",),
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=_alone,
    opens=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
