"""What the figures of `hangs` mean."""

from catalog.terms import Term

TERMS = (
    Term(
        "Open operation",
        "A rank's host handed it to the library of collectives, and it had not completed when the flight recorder was "
        "dumped.",
        unit="1",
        source="PyTorch's flight recorder",
    ),
    Term(
        "Not entered",
        "Others of the group have an operation open that this rank's host had not enqueued: by its number in the "
        "group, or because more sends or receives are open on one side than on the other.",
        unit="1",
    ),
    Term(
        "Completion unseen",
        "An all-reduce, all-gather, reduce-scatter, all-to-all or barrier that a peer completed, and this rank had "
        "not: its device took part, and then it, its link or its driver stopped telling. What came before it in the "
        "group counts too. Where more than half of a group have it open, nobody is told to be late.",
        unit="1",
    ),
    Term(
        "Named rank",
        "A rank that did not enter what others wait for and waits for nobody itself, or whose completions are unseen. "
        "A rank that is held up by another is not named.",
        unit="1",
    ),
    Term(
        "Held up",
        "Ranks with an open operation that leads to a named rank, from one group to the next: over those that have "
        "not entered it, and over what is open before it on those that have. The second is possible, not certain, "
        "since operations of two groups may overlap.",
        unit="1",
    ),
    Term(
        "Silent rank",
        "A rank of a group that left no dump, an empty one, or one that lists no operations.",
        unit="1",
    ),
)
