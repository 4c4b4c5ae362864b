"""Answers in words: one file a question, listed once."""

from app.answers import (
    checkpoints,
    collectives,
    compiled,
    engine,
    flops,
    goodput,
    input,
    interruptions,
    kv,
    ledger,
    load,
    memory,
    mfu,
    ops,
    overlap,
    padding,
    prefix,
    roofline,
    serving,
    slo,
    slowdown,
    speculation,
    steps,
    stragglers,
    workload,
)
from app.answers.base import Answer

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
