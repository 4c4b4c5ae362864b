"""What the times of collectives mean."""

from catalog.terms import Term

TIME = Term(
    "Time",
    "The longer of the hops and of the bytes over the links; of an all-to-all over several axes both added.",
    unit="s",
)
CROSSOVER = Term(
    "Crossover",
    "The array for which both take as long: below it more bandwidth is worth nothing.",
    formula="time of the hops / seconds per byte",
    unit="bytes",
)
BAND = Term("Band", "From the fastest to the slowest that its assumptions allow; what each end is, is said below.")
CRITICAL_TOKENS = Term(
    "Critical tokens",
    "Tokens of a step for each chip from which gradients that move so hide behind the backward "
    "pass: BF16 peak of the chip by the rate at which the array moves.",
    formula="BF16 peak x seconds per byte / times that the array crosses the network",
    unit="tokens per chip",
)
TERMS = (
    Term(
        "Array",
        "All of it; each chip holds a part. An all-reduce adds up as many arrays of this size as chips.",
        unit="bytes",
    ),
    TIME,
    CROSSOVER,
    BAND,
    CRITICAL_TOKENS,
)
