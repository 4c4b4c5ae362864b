"""Engine: What did the engine run, queue and keep over time?"""

from analyzers.serving import engine as analyzer
from analyzers.serving.engine.terms import TERMS
from app.questions.base import Question
from app.questions.engine import words

ENGINE = Question(
    name="engine",
    title="Engine",
    icon=":material/settings:",
    asks="What did the engine run, queue and keep over time?",
    file="questions/engine/page.py",
    key="e",
    about={"serving": ("engine", "iterations")},
    inputs=("engine", "iterations"),
    explains={
        "bucket_padding": "How full the passes were",
        "preemption_recompute": "When requests were preempted, and why",
        "scheduling": "What the engine ran and queued over time",
        "no_requests": "When the engine was empty",
    },
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
