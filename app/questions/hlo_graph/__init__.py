"""HLO graph: What feeds an operation, and who uses it?"""

from collections.abc import Mapping
from typing import Any

from analyzers.base import Facts
from analyzers.program import graph as analyzer
from analyzers.program.graph_terms import TERMS
from app.questions.base import Question
from app.questions.hlo_graph import words
from errors import QuestionError
from runs.tables import Tables


def _alone(tables: Tables, facts: Facts, options: Mapping[str, Any]) -> analyzer.GraphResult:
    raise QuestionError("programs are kept with a run", expected="the id or the name of a run, not of a model")


HLO_GRAPH = Question(
    name="hlo_graph",
    title="HLO graph",
    icon=":material/account_tree:",
    asks="What feeds an operation of a program, and who uses what it makes?",
    file="questions/hlo_graph/page.py",
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
