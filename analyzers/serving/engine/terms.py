"""What the figures of `engine` mean."""

from catalog.terms import Term

TERMS = (
    Term(
        "Waiting for KV cache",
        "Requests wait while at least 90 % of the KV cache is in use, or some are preempted.",
        unit="s",
    ),
    Term("Waiting for a seat", "Requests wait while as many run as may (max_num_seqs).", unit="s"),
    Term(
        "Waiting for tokens of the budget",
        "Requests wait though there is memory and a seat: an iteration has room for a "
        "limited number of tokens, or the scheduler holds them back.",
        unit="s",
    ),
    Term(
        "Waiting, cause unknown", "Requests wait, and the input lacks the cache's use or the number of seats.", unit="s"
    ),
    Term("Not told whether requests wait", "The input says nothing of waiting requests at that time.", unit="s"),
    Term(
        "Time of a sample",
        "From the sample before it; an iteration lasts until the next begins, at most 50 ms longer.",
        unit="s",
    ),
    Term(
        "KV cache in use",
        "Share of its blocks that are taken, as the engine says; blocks kept for prefixes may not count.",
        formula="blocks taken / blocks",
        unit="1",
    ),
    Term(
        "Prompt tokens read",
        "Prompt tokens that the engine computed. What it found in its prefix cache is not read again; where an input "
        "counts whole prompts alone, a note says so.",
        formula="prompt tokens - those found in the prefix cache",
        unit="tokens",
    ),
    Term(
        "Prompt share",
        "Prompt tokens read by prompt tokens read and generated tokens: above half the time is prefill-heavy.",
        formula="prompt tokens read / (prompt tokens read + generated tokens)",
        unit="1",
    ),
    Term(
        "Iteration",
        "Duration = overhead + tokens x time per token, fitted by Theil and Sen: stalls do not bend it.",
        formula="duration = overhead + tokens x time per token",
        unit="s",
        source="H. Theil, A rank-invariant method of linear and polynomial regression analysis, 1950; P. K. Sen, "
        "Estimates of the regression coefficient based on Kendall's tau, 1968, for the fit",
    ),
)
