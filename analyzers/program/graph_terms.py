"""What the figures of `hlo_graph` mean."""

from analyzers.program.terms import TIME
from catalog.terms import Term

LEVEL = Term(
    "Level",
    "How many values lie between an operation and the one asked about: its operands and users are one level away.",
)
OPENED = Term(
    "Opened",
    "In place of a fusion, loop or call stands what is in it: its parameters are what it is given, its result is the "
    "root of its computation.",
)
CALLED_BY = Term("Called by", "The operation that runs the computation in which the operation lies: a fusion, a loop.")
TERMS = (LEVEL, OPENED, CALLED_BY, TIME)
