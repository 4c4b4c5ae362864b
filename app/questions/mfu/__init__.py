"""MFU: Which share of the chips' peak became useful maths?"""

from analyzers.flops import mfu as analyzer
from analyzers.flops.mfu_terms import TERMS
from app.questions.base import Question
from app.questions.mfu import words

MFU = Question(
    name="mfu",
    title="MFU",
    icon=":material/speed:",
    asks="Which share of the chips' peak became useful maths?",
    file="questions/mfu/page.py",
    key="m",
    about={"job": ()},
    inputs=("steps", "captures"),
    explains={
        "useful_maths": "How the useful maths was counted, and against which peak",
    },
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
