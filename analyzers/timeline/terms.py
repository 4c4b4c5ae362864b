"""What a timeline's numbers mean."""

from catalog.terms import Term

TERMS = (
    Term("Events", "Executions, host calls, steps, entries of the job, phases of requests and passes of engines."),
    Term("Lane", "A line of a device, a thread of a host, or what the job did, as the trace names it."),
    Term(
        "Row",
        "Part of a lane in which no event covers another: nested ones stand below what holds them, those that overlap "
        "side by side.",
    ),
    Term(
        "Account strip",
        "In which account of the ledger each instant of the job, or of a device in its kept steps, is entered. "
        "Computing is one colour: the ledger parts it by FLOPs, which have no place in time.",
    ),
    Term(
        "Colour of an event",
        "That of the account that such work is entered in where nothing covers it: matrix products that of useful "
        "maths, other computing that of below roofline, a collective that of exposed communication.",
    ),
    Term("Mark", "What is drawn: an event, or all events of one row that are shorter than a pixel together."),
    Term(
        "Covered",
        "Time of a lane in which an event stands; one that lies in another counts in its own row too.",
        "sum over rows of the durations of their events",
        "s",
    ),
)
