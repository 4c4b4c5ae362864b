"""What the figures of `collectives` mean."""

from catalog.terms import Term

TERMS = (
    Term(
        "Waiting",
        "All ranks leave a synchronising collective together, so the shortest duration belongs to the last to "
        "arrive; what the others took longer is waiting. No clock is compared with another.",
    ),
    Term(
        "Algorithm bandwidth",
        "Message over the time of one execution without waiting; the message is what one rank "
        "contributes, for an all-gather what it ends up with.",
    ),
    Term(
        "Bus bandwidth",
        "Algorithm bandwidth times 2(n-1)/n for an all-reduce, (n-1)/n for all-gather, reduce-scatter "
        "and all-to-all, 1 else, for n ranks: comparable across n and with the link (as nccl-tests reckon).",
    ),
    Term("Share of link", "Bus bandwidth over what a device can send one way on all its links of that network."),
    Term(
        "Bound by latency",
        "Takes no more than twice the quickest of its kind and group, though the link alone would "
        "need less than half of that: drawn hollow.",
    ),
    Term("Exposed", "Collectives under which the device computed nothing; two at the same time count twice here."),
)
