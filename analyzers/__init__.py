"""Analyzers: one file per question, each a pure function from a run's tables and facts to a frozen result."""

from analyzers import collectives, compiled, flops, input, ledger, memory, mfu, ops, overlap, padding, roofline, steps

ANALYZERS = (ledger, steps, mfu, flops, compiled, padding, memory, roofline, ops, overlap, collectives, input)
