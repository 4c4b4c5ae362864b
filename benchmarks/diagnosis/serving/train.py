"""Trains the two models of the engine, once for a set: `main([plan, out])`."""

from reference.serve.training import main as main
