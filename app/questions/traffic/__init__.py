"""Traffic: How bursty is the traffic, and how long are requests?"""

from analyzers.serving import traffic as analyzer
from analyzers.serving.traffic_terms import TERMS
from app.questions.base import Question
from app.questions.traffic import words

TRAFFIC = Question(
    name="traffic",
    title="Traffic",
    icon=":material/traffic:",
    asks="How bursty is the traffic, and how long are requests?",
    aliases=("workload",),
    file="questions/traffic/page.py",
    about={"serving": ("requests",)},
    inputs=("requests",),
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
