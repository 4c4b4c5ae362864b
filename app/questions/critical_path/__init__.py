"""Critical path: What does the time of a step hang on?"""

from analyzers.device.critical_path import critical_path as analyzer
from analyzers.device.critical_path.terms import TERMS
from app.questions.base import Question
from app.questions.critical_path import words

CRITICAL_PATH = Question(
    name="critical_path",
    title="Critical path",
    icon=":material/timeline:",
    asks="What does the time of a step hang on, and what could take longer for nothing?",
    file="questions/critical_path/page.py",
    about={"job": ("op_events",), "serving": ("op_events",)},
    inputs=("captures", "launches"),
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
