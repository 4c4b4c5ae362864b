"""Answers in words: one file a question, listed once."""

from app.questions.checkpoints import words as checkpoints
from app.questions.collectives import words as collectives
from app.questions.compiled import words as compiled
from app.questions.engine import words as engine
from app.questions.flops import words as flops
from app.questions.goodput import words as goodput
from app.questions.input import words as input
from app.questions.interruptions import words as interruptions
from app.questions.kv_cache import words as kv
from app.questions.latency import words as serving
from app.questions.ledger import words as ledger
from app.questions.load import words as load
from app.questions.memory import words as memory
from app.questions.mfu import words as mfu
from app.questions.objectives import words as slo
from app.questions.operations import words as ops
from app.questions.overlap import words as overlap
from app.questions.padding import words as padding
from app.questions.prefix_cache import words as prefix
from app.questions.roofline import words as roofline
from app.questions.slowdown import words as slowdown
from app.questions.speculation import words as speculation
from app.questions.steps import words as steps
from app.questions.stragglers import words as stragglers
from app.questions.traffic import words as workload
from app.words import Answer

ANSWERS = (
    ledger,
    goodput,
    interruptions,
    checkpoints,
    steps,
    mfu,
    flops,
    compiled,
    padding,
    memory,
    roofline,
    ops,
    overlap,
    collectives,
    stragglers,
    slowdown,
    input,
    kv,
    speculation,
    prefix,
    workload,
    load,
    engine,
    serving,
    slo,
)


def answer(name: str) -> Answer:
    """How the answer to question `name` is worded."""
    return next(a for a in ANSWERS if name == a.NAME)
