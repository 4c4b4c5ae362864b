"""What the figures of `steps` mean."""

from catalog.terms import Term

TERMS = (
    Term("Kept", "A step whose result stayed: it was not taken again after a restart."),
    Term("Lost", "Its result went with an interruption and the step was taken again; drawn hollow."),
    Term("First of its attempt", "Includes tracing and compilation; not in the median."),
    Term(
        "Cannot be true",
        "A printed value that contradicts the chip's peak or the clock; drawn hollow, left out of all "
        "figures. With asynchronous dispatch the first printed steps are often such.",
    ),
    Term("Usual step", "The median of kept, plausible steps that are not the first of their attempt."),
    Term("Tokens per second and chip, TFLOP/s per chip", "Averages over the time of kept, plausible, usual steps."),
)
