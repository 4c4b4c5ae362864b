"""What the figures of findings mean."""

from catalog.terms import Term

TERMS: tuple[Term, ...] = (
    Term(
        "gain",
        "Chip time that mending a finding would give back: what is likely, and between which two it lies. Of two "
        "findings none is given the same chip-second: what the first explains is taken off the second.",
        unit="chip-seconds",
    ),
    Term(
        "joint",
        "What mending this finding and all before it gives back together.",
        unit="chip-seconds",
    ),
    Term(
        "confidence",
        "How sure it is that this is what is wrong, 0 to 1: by how clear of chance a rank is late, by whether a line "
        "of a log names the cause or only that something failed, or by how an account of the ledger is told.",
        unit="1",
    ),
    Term(
        "floor",
        "Share of the chip time below which nothing is called a finding: 2 % unless another is asked for.",
        unit="1",
    ),
    Term(
        "told_share",
        "Part of the chip time of which an input tells what it was: the ledger less what is unattributed.",
        "1 - unattributed / held",
        "1",
    ),
    Term("kept_share", "Part of the chip time in steps that were kept, or that served tokens of answers.", unit="1"),
    Term("useful_share", "Part of the chip time that the model's own FLOPs need at the chip's peak.", unit="1"),
    Term(
        "rungs",
        "Utilisations from the chip's peak down to all chip time held, by one FLOP convention and at one peak: the "
        "roof of its operations, a published run on such chips, its best step, its usual steps, from its first step to "
        "its last, and all that was paid for. A bound that a step has beaten is no rung.",
        "model FLOPs / (chips x peak x time)",
        "1",
    ),
    Term(
        "gap",
        "All that is not useful maths, by account of the ledger, the largest first: what a run of this model on these "
        "chips could at best be rid of.",
        unit="chip-seconds",
    ),
)
