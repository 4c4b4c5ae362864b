"""Latency: How long did requests wait, and where?"""

from analyzers.serving import latency as analyzer
from analyzers.serving.latency.terms import TERMS
from app.questions.base import Question
from app.questions.latency import words

LATENCY = Question(
    name="latency",
    title="Latency",
    icon=":material/schedule:",
    asks="How long did requests wait, and where?",
    aliases=("serving",),
    file="questions/latency/page.py",
    key="t",
    about={"serving": ("requests", "stages", "histograms", "scalars")},
    inputs=("requests", "iterations"),
    explains={
        "prefill": "How long prompts waited and took to be read",
        "decode": "How fast tokens followed one another",
        "failed_requests": "Which requests failed, and what they cost",
    },
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
