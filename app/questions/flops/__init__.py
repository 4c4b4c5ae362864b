"""FLOPs: What does a token cost to train, by each way of counting?"""

from analyzers.flops import flops as analyzer
from app.questions.base import Question
from app.questions.flops import words
from catalog.flops_terms import TERMS

FLOPS = Question(
    name="flops",
    title="FLOPs",
    icon=":material/functions:",
    asks="What does a token cost to train, by each way of counting?",
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
