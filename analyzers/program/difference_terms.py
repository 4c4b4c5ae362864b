"""What the figures of `hlo_diff` mean."""

from analyzers.program.difference import CHANGES
from catalog.terms import Term

MATCHED = Term(
    "Matched",
    "The part of a program's FLOPs or bytes that is in operations which the other program has too, changed or not.",
    unit="1",
)
UNCHANGED = Term(
    "Unchanged operations",
    "Operations that are in both programs with the same opcode, shape, layout, attributes, contents, number of "
    "executions and operands.",
)
CHANGED = Term(
    "Changed operations",
    "Operations that are in both programs and differ in something: " + "; ".join(CHANGES.values()) + ".",
)
ONLY = Term("Only in one", "Operations for which the other program has none that does the same.")
TIME = Term(
    "Time in one run",
    "Self time of an operation in one run of its program on one device: the mean of its executions, times how many one "
    "run has.",
    unit="s",
)
TERMS = (MATCHED, UNCHANGED, CHANGED, ONLY, TIME)
