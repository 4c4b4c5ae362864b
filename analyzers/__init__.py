"""Analyzers: one file per question, each a pure function from a run's tables and facts to a frozen result."""

from analyzers import (
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

ANALYZERS = (
    ledger, goodput, interruptions, checkpoints, steps, mfu, flops, compiled, padding, memory, roofline, ops, overlap,
    collectives, stragglers, slowdown, input,
)  # fmt: skip
