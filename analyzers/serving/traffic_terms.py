"""What the figures of `traffic` mean."""

from catalog.terms import Term

TERMS = (
    Term(
        "CV of the gaps",
        "Standard deviation of the times between arrivals by their mean, over all gaps. A Poisson "
        "process has 1, a metronome 0.",
    ),
    Term(
        "Index of dispersion",
        "Variance of the counts in windows of one length by their mean. A Poisson process has 1 at "
        "any length; the band holds 99 of 100 of them.",
    ),
    Term("Peak by mean", "Requests in the busiest window by those in the average one."),
    Term("Prompt share", "Prompt tokens by all tokens, cached ones included: what a prefix cache spares is not in it."),
    Term(
        "Mix",
        "A prompt from 512 and an answer from 128 tokens count as long, the thresholds of TetriInfer (arXiv "
        "2401.11181); the address takes others: heavy_prompt, heavy_output.",
    ),
    Term("In flight", "Mean by Little's law: the sum of all times in the system by the time observed."),
)
