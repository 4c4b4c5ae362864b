"""What the figures of `load` mean."""

from catalog.terms import Term

TERMS = (
    Term(
        "Answered per second",
        "Requests answered by the duration of the load, first request to last answer.",
        formula="requests answered / (last answer - first request)",
        unit="requests/s",
    ),
    Term(
        "Knee",
        "Between the heaviest load that shows neither sign and the first that shows one. Rate: it answers less "
        "than 95 % of what a server would that keeps up, less 2 / sqrt(requests) for chance. Latency: answered per "
        "second by mean latency (its power, after Kleinrock) is over 10 % below the greatest of a lighter load.",
        source="L. Kleinrock, Power and deterministic rules of thumb for probabilistic problems in computer "
        "communications, 1979",
    ),
    Term(
        "Capacity",
        "What loads that fall behind still answer: the median; the verdict gives the range.",
        formula="median of what loads that fall behind answer",
        unit="requests/s",
    ),
    Term(
        "Steady part",
        "From where MSER finds the requests in flight (or, in a full server, running) level to the last "
        "arrival (or the last that is scheduled); ± is the 95 % interval from the means of ten parts of it.",
        source="K. P. White Jr., An effective truncation heuristic for bias reduction in simulation output, 1997, "
        "for MSER",
    ),
    Term(
        "Tokens/s of a user",
        "1 / mean TPOT: what one reader sees after the first token.",
        formula="1 / mean TPOT",
        unit="tokens/s",
    ),
    Term(
        "Dollars per million output tokens",
        "Chips x price of a chip-hour by output tokens per hour; prompts are not charged apart.",
        formula="10^6 x chips x price of a chip-hour / output tokens per hour",
        unit="USD per million tokens",
    ),
    Term(
        "Little's law",
        "Requests in flight = answered per second x mean end-to-end latency; held against what the tool "
        "allowed or printed, or the engine's running and waiting.",
        formula="requests in flight = answered per second x mean end-to-end latency",
        unit="requests",
        source="J. D. C. Little, A proof for the queuing formula: L = λW, 1961",
    ),
)
