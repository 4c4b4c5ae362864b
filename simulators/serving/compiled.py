"""How the engine's loop is compiled: `compiled`, a decorator."""

from runs.compiled import compiler

compiled = compiler(__package__)()
