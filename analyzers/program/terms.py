"""What the figures of `hlo` mean."""

from catalog.terms import Term

INSTRUCTIONS = Term(
    "Instructions",
    "Instructions of a program in all of its computations, those inside fusions and loops once.",
)
KEPT = Term("Programs kept", "Programs whose text is kept with the run, those that several captures carry once.")
SCHEDULED = Term(
    "Scheduled",
    "Whether the compiler's order of execution is kept with the program: then its text stands in that order.",
)
TIME = Term(
    "Time of operations",
    "Self time of the operations of a program on devices, added over devices and captures. Inside a fusion nothing is "
    "timed apart.",
    unit="s",
)
TERMS = (KEPT, INSTRUCTIONS, SCHEDULED, TIME)
