"""Operations: Which operations take the devices' time?"""

from analyzers.device import operations as analyzer
from analyzers.device.operations_terms import TERMS
from app.questions.base import Question
from app.questions.operations import words

OPERATIONS = Question(
    name="operations",
    title="Operations",
    icon=":material/format_list_numbered:",
    asks="Which operations take the devices' time?",
    aliases=("ops",),
    file="questions/operations/page.py",
    key="x",
    about={"job": (), "serving": ("ops",), "compiled": ()},
    inputs=("captures",),
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
