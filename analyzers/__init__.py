"""Analyzers: each question's answer as a pure function from a run's tables and facts to a frozen result."""
