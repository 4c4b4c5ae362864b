"""HLO difference: What changed between two programs?"""

from collections.abc import Mapping
from typing import Any

from analyzers.base import Facts
from analyzers.program import difference as analyzer
from analyzers.program.difference_terms import TERMS
from app.questions.base import Question
from app.questions.hlo_diff import words
from errors import QuestionError
from runs.tables import Tables


def _alone(tables: Tables, facts: Facts, options: Mapping[str, Any]) -> analyzer.DifferenceResult:
    raise QuestionError("programs are kept with a run", expected="the id or the name of a run, not of a model")


HLO_DIFF = Question(
    name="hlo_diff",
    title="HLO difference",
    icon=":material/difference:",
    asks="What changed between two programs, and what does that cost?",
    file="questions/hlo_diff/page.py",
    about={"job": ("modules",), "serving": ("modules",), "compiled": ("modules",)},
    program=True,
    inputs=("modules",),
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=_alone,
    opens=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
