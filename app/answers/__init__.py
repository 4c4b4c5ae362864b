"""Answers in words: one file a question, listed once."""

from app.answers import (
    checkpoints,
    collectives,
    compiled,
    flops,
    goodput,
    input,
    interruptions,
    ledger,
    memory,
    mfu,
    ops,
    overlap,
    padding,
    roofline,
    slowdown,
    steps,
    stragglers,
)
from app.answers.base import Answer

ANSWERS = (
    ledger, goodput, interruptions, checkpoints, steps, mfu, flops, compiled, padding, memory, roofline, ops, overlap,
    collectives, stragglers, slowdown, input,
)  # fmt: skip


def answer(name: str) -> Answer:
    """How the answer to question `name` is worded."""
    return next(a for a in ANSWERS if name == a.NAME)
