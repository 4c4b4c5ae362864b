"""Analyzers: one file per question, each a pure function from a run's tables and facts to a frozen result."""

from analyzers import ledger, steps

ANALYZERS = (ledger, steps)
