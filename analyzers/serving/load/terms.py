"""What the figures of `load` mean."""

from catalog.terms import Term

TERMS = (
    Term("Answered per second", "Requests answered by the duration of the load, first request to last answer."),
    Term(
        "Knee",
        "Between the heaviest load that shows neither sign and the first that shows one. Rate: it answers less "
        "than 95 % of what a server would that keeps up, less 2 / sqrt(requests) for chance. Latency: answered per "
        "second by mean latency (its power, after Kleinrock) is over 10 % below the greatest of a lighter load.",
    ),
    Term("Capacity", "What loads that fall behind still answer: the median; the verdict gives the range."),
    Term(
        "Steady part",
        "From where MSER finds the requests in flight (or, in a full server, running) level to the last "
        "arrival (or the last that is scheduled); ± is the 95 % interval from the means of ten parts of it.",
    ),
    Term("Tokens/s of a user", "1 / mean TPOT: what one reader sees after the first token."),
    Term(
        "Dollars per million output tokens",
        "Chips x price of a chip-hour by output tokens per hour; prompts are not charged apart.",
    ),
    Term(
        "Little's law",
        "Requests in flight = answered per second x mean end-to-end latency; held against what the tool "
        "allowed or printed, or the engine's running and waiting.",
    ),
)
