"""What the comparison of two served runs, A and B, means by its names."""

from catalog.terms import Term

PAIRED = Term(
    "Paired",
    "Both runs answered the same requests (equal ids, equal prompts): each is compared with itself, which "
    "takes the difference between requests out of it.",
)
TERMS = (
    Term("Difference", "B less A. Below it B over A, as a ratio; 1 is no difference.", formula="B - A; B / A"),
    Term(
        "95 % interval",
        "Of the bootstrap: blocks of consecutive requests are drawn with replacement 2,000 times, each "
        "block at least five times as long as the run remembers, and widened where blocks are few or short. Drawn from "
        "known sequences such intervals held the truth in 92 to 98 of 100 comparisons.",
    ),
    PAIRED,
    Term("No difference can be told", "The interval holds 0: chance alone would give a difference as large."),
    Term(
        "Times the requests",
        "So many times as many requests would make an interval that just excludes 0, if the "
        "difference stayed as it is: half widths shrink with the square root.",
        unit="1",
    ),
    Term(
        "Independent requests",
        "Requests over the autocorrelation time of their latencies in order of arrival. In a "
        "queue that grows, hundreds of requests may count as a handful.",
        formula="requests / autocorrelation time",
        unit="requests",
    ),
    Term(
        "Output tokens per second, first to last",
        "From the first arrival to the last answer, pauses between loads included: it is "
        "compared over time; the page Latency leaves those pauses out.",
        formula="output tokens / (last answer - first arrival)",
        unit="tokens/s",
    ),
    Term(
        "B took longer",
        "How often, of one request of each drawn at random, B's took longer. 50 %: neither.",
        unit="1",
    ),
)
