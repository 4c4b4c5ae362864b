"""What the figures of `steps` mean."""

from catalog.terms import Term

TERMS = (
    Term("Kept step", "A step whose result stayed: it was not taken again after a restart."),
    Term("Lost step", "Its result went with an interruption and the step was taken again; drawn hollow."),
    Term("First of its attempt", "Includes tracing and compilation; not in the median."),
    Term(
        "Cannot be true",
        "A printed value that contradicts the chip's peak or the clock; drawn hollow, left out of all "
        "figures. With asynchronous dispatch the first printed steps are often such.",
    ),
    Term(
        "Usual step",
        "The median of kept, plausible steps that are not the first of their attempt. Pauses that the job recorded "
        "(saves, evaluations, custom events) are no time of a step.",
        formula="median of kept, plausible steps, without the first of each attempt",
        unit="s",
    ),
    Term(
        "Tokens per second and chip, TFLOP/s per chip",
        "Averages over the time of kept, plausible, usual steps.",
        formula="sum of (rate x duration) / sum of durations",
        unit="tokens/s, 10^12 FLOP/s",
    ),
    Term(
        "Pattern of steps",
        "Usual steps that grow along a line, of which every n-th is longer, or whose median changed for good; told "
        "where it stands clear of the scatter of neighbouring steps and costs 2 % of their time at least.",
        formula="excess = sum over its steps of duration - usual, for all chips",
        unit="chip-seconds",
    ),
)
