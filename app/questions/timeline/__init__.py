"""Timeline: What happened when, on every host and device, to the nanosecond?"""

from analyzers import timeline as analyzer
from analyzers.timeline.terms import TERMS
from app.questions.base import Question
from app.questions.timeline import words

TIMELINE = Question(
    name="timeline",
    title="Timeline",
    icon=":material/view_timeline:",
    asks="What happened when, on every host and device, and in which account is it entered?",
    file="questions/timeline/page.py",
    about={"job": (), "serving": ()},
    inputs=("captures", "lifecycle", "requests"),
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
