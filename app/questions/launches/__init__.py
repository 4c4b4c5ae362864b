"""Launches: Was the device idle because its host was late?"""

from analyzers.device.launches import launches as analyzer
from analyzers.device.launches.terms import TERMS
from app.questions.base import Question
from app.questions.launches import words

LAUNCHES = Question(
    name="launches",
    title="Launches",
    icon=":material/rocket_launch:",
    asks="Was the device idle because its host was late, and with what?",
    file="questions/launches/page.py",
    about={"job": ("launches",), "serving": ("launches",)},
    inputs=("captures", "launches"),
    explains={
        "idle_launching": "Whether the host launched too late, and what it did instead",
        "idle_between_kernels": "Which kernels were held back",
    },
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
