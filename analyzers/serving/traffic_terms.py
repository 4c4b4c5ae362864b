"""What the figures of `traffic` mean."""

from catalog.terms import Term

TERMS = (
    Term(
        "CV of the gaps",
        "Standard deviation of the times between arrivals by their mean, over all gaps. A Poisson "
        "process has 1, a metronome 0.",
        formula="standard deviation of the gaps / their mean",
        unit="1",
    ),
    Term(
        "Index of dispersion",
        "Variance of the counts in windows of one length by their mean. A Poisson process has 1 at "
        "any length; the band holds 99 of 100 of them.",
        formula="variance of counts / mean of counts",
        unit="1",
    ),
    Term(
        "Peak by mean",
        "Requests in the busiest window by those in the average one.",
        formula="requests of the busiest window / requests of the average window",
        unit="1",
    ),
    Term(
        "Prompt share of traffic",
        "Prompt tokens by all tokens, cached ones included: what a prefix cache spares is not in it.",
        formula="prompt tokens / (prompt + output tokens)",
        unit="1",
    ),
    Term(
        "Mix",
        "A prompt from 512 and an answer from 128 tokens count as long, the thresholds of TetriInfer (arXiv "
        "2401.11181); the address takes others: heavy_prompt, heavy_output.",
        unit="1",
        source="C. Hu et al., Inference without interference: disaggregate LLM inference for mixed downstream "
        "workloads (TetriInfer), arXiv 2401.11181",
    ),
    Term(
        "In flight",
        "Mean by Little's law: the sum of all times in the system by the time observed.",
        formula="sum of times in the system / time observed",
        unit="requests",
        source="J. D. C. Little, A proof for the queuing formula: L = λW, 1961",
    ),
)
