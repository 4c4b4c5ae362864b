"""What the figures of `roofline` mean."""

from analyzers.device.roofline import BOUNDS
from catalog.terms import Term

TITLES = {
    "compute": "compute-bound",
    "memory": "memory-bound",
    "neither": "neither",
    "above": "above the roof",
    "communication": "communication",
    "asynchronous": "waiting for copies",
    "host": "host transfers",
    "unknown": "unknown",
}

TERMS = (
    Term(
        "Roof",
        "The least time of an operation: the larger of FLOPs / peak FLOP/s and bytes / memory bandwidth. Of its "
        "roof: that by the time it took.",
    ),
    Term(
        "Operational intensity",
        "FLOPs by bytes moved to and from device memory. Left of the ridge memory binds, right of it compute.",
    ),
    Term(
        "Reached",
        "The best rates that operations of this run reached, with a thousandth of all time, three executions "
        "and a microsecond each.",
    ),
    *(Term(f"{TITLES[b][0].upper()}{TITLES[b][1:]}", f"{text[0].upper()}{text[1:]}.") for b, text in BOUNDS.items()),
)
