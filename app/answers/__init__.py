"""Answers in words: one file a question, listed once."""

from app.answers import collectives, compiled, flops, input, ledger, memory, mfu, ops, overlap, padding, roofline, steps
from app.answers.base import Answer

ANSWERS = (ledger, steps, mfu, flops, compiled, padding, memory, roofline, ops, overlap, collectives, input)


def answer(name: str) -> Answer:
    """How the answer to question `name` is worded."""
    return next(a for a in ANSWERS if name == a.NAME)
