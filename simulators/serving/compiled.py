"""How the engine's loop is compiled: `allocating` and `compiled`, decorators."""

from runs.compiled import compiler

_compiler = compiler(__package__)

allocating = _compiler()
"""Compiles a function when it is first called, without the interpreter's lock, and keeps the code on disk."""
compiled = _compiler(_nrt=False)
"""The same for functions that make no array: without reference counts, which cost more than small functions do."""
