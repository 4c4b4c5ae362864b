"""Overlap: How much communication is hidden, and who is idle when?"""

from analyzers.device import overlap as analyzer
from analyzers.device.overlap_terms import TERMS
from app.questions.base import Question
from app.questions.overlap import words

OVERLAP = Question(
    name="overlap",
    title="Overlap",
    icon=":material/layers:",
    asks="How much communication is hidden, and who is idle when?",
    file="questions/overlap/page.py",
    key="v",
    about={"job": (), "serving": ("ops",)},
    inputs=("captures",),
    explains={
        "exposed_communication": "What is hidden behind computing, and what is not",
        "exposed_copies": "When the devices only copied",
        "device_idle": "When the devices were idle",
    },
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
