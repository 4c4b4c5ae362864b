"""What the figures of `collectives` mean."""

from analyzers.ranks.terms import WAITING
from catalog.terms import Term

TERMS = (
    WAITING,
    Term(
        "Algorithm bandwidth",
        "Message over the time of one execution without waiting; the message is what one rank "
        "contributes, for an all-gather what it ends up with.",
        formula="message / (duration - waiting)",
        unit="bytes/s",
        source="nccl-tests, doc/PERFORMANCE.md, Algorithm bandwidth",
    ),
    Term(
        "Bus bandwidth",
        "Algorithm bandwidth times 2(n-1)/n for an all-reduce, (n-1)/n for all-gather, reduce-scatter "
        "and all-to-all, 1 else, for n ranks: comparable across n and with the link (as nccl-tests reckon).",
        formula="algorithm bandwidth x factor; the factor: 2(n-1)/n of an all-reduce, (n-1)/n of all-gather, "
        "reduce-scatter and all-to-all, else 1",
        unit="bytes/s",
        source="nccl-tests, doc/PERFORMANCE.md, Bus bandwidth",
    ),
    Term(
        "Share of link",
        "Bus bandwidth over what a device can send one way on all its links of that network.",
        formula="bus bandwidth / one-way bandwidth of the device's links",
        unit="1",
    ),
    Term(
        "Bound by latency",
        "Takes no more than twice the quickest of its kind and group, though the link alone would "
        "need less than half of that: drawn hollow. Not told where waiting for other ranks may be inside.",
    ),
    Term(
        "Not covered",
        "Collectives under which the device computed nothing; two at the same time count twice here.",
        unit="s",
    ),
)
