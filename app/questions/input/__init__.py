"""Input: Is the run bound by its input?"""

from analyzers.device import input as analyzer
from analyzers.device.input_terms import TERMS
from app.questions.base import Question
from app.questions.input import words

INPUT = Question(
    name="input",
    title="Input",
    icon=":material/input:",
    asks="Is the run bound by its input?",
    file="questions/input/page.py",
    key="u",
    about={"job": ()},
    inputs=("captures", "lifecycle", "steps"),
    explains={
        "input_wait": "Whether the run is bound by its input",
        "data_loading": "Whether the run is bound by its input",
    },
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
