"""What the figures of `heap` mean."""

from catalog.terms import Term

PEAK = Term(
    "Program's peak",
    "What one device holds for a program at its fullest moment, as the compiler placed it.",
    formula="held all the time + alive at the peak + room at the peak",
    unit="bytes",
)
ALWAYS = Term(
    "Held all the time",
    "Inputs, results that do not reuse them, and constants: in memory from the first operation to the last.",
    unit="bytes",
)
LIVE = Term(
    "Alive at the peak",
    "Values between operations that are needed when the arena of temporaries is fullest.",
    unit="bytes",
)
ROOM = Term("Room at the peak", "What packing leaves unused in the arena at its fullest moment.", unit="bytes")
EVENT = Term(
    "Event",
    "A value begins or ends to be needed, in the order in which the compiler has the program run, the body of a loop "
    "once.",
)
TERMS = (PEAK, ALWAYS, LIVE, ROOM, EVENT)
