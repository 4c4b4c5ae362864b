"""HLO: What do the programs of a run say?"""

from collections.abc import Mapping
from typing import Any

from analyzers.base import Facts
from analyzers.program import hlo as analyzer
from analyzers.program.terms import TERMS
from app.questions.base import Question
from app.questions.hlo import words
from errors import QuestionError
from runs.tables import Tables


def _alone(tables: Tables, facts: Facts, options: Mapping[str, Any]) -> analyzer.HloResult:
    raise QuestionError("programs are kept with a run", expected="the id or the name of a run, not of a model")


HLO = Question(
    name="hlo",
    title="HLO",
    icon=":material/code:",
    asks="What do the compiled programs of a run say, and where is an operation in them?",
    file="questions/hlo/page.py",
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
