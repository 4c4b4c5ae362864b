"""What the figures of `slowdown` mean."""

from catalog.terms import Term

TERMS = (
    Term(
        "S",
        "Replayed step time over ideal step time, both without launch delays, summed over all steps.",
        formula="replayed step time / ideal step time",
        unit="1",
        source="J. Lin et al., Understanding stragglers in large model training using what-if analysis, OSDI 2025",
    ),
    Term(
        "Ideal",
        "Computing takes the mean of its type over all ranks, steps and micro-batches of the trace; a transfer "
        "the median of its type. The job does the same work, evenly.",
    ),
    Term(
        "Transfer",
        "End of an operation of communication less the last start among its peers; what it took before that "
        "is waiting.",
        formula="end - the last start among its peers",
        unit="s",
    ),
    Term(
        "Replay",
        "An operation starts when those have ended that had ended when it started in the trace; a transfer when "
        "all of its peers have started: both ends of an exchange, all data-parallel ranks of a stage, all ranks for "
        "the gradient norm.",
    ),
    Term(
        "S of a worker",
        "The lesser of S of its data-parallel rank and S of its stage: all durations ideal but those.",
        formula="min(S of its data-parallel rank, S of its stage)",
        unit="1",
    ),
    Term(
        "M_W, M_S",
        "The share of the slowdown that is gone when the slowest 3 % of workers, or the last stage, take "
        "ideal durations. It can exceed 100 %: ideal is the mean with the slow ones in it.",
        formula="(replayed - replayed with those ideal) / (replayed - ideal)",
        unit="1",
    ),
    Term(
        "Micro-batches of different length",
        "Named as the cause where forward and backward durations of a micro-batch, "
        "each against the mean of its rank, correlate by 0.9 or more and vary by 5 % or more.",
    ),
    Term(
        "Launch delay",
        "Time between the end of what an operation waits for and its start: the host, the data loader, "
        "work that the trace does not show. No part of S.",
        formula="start - the last end among what it waits for",
        unit="s",
    ),
    Term(
        "Chip time lost",
        "(step time without launch delays - ideal step time) x chips, over the steps of the trace.",
        formula="(step time - launch delays - ideal step time) x chips",
        unit="chip-seconds",
    ),
)
