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
        formula="max(FLOPs / peak FLOP/s, bytes / memory bandwidth)",
        unit="s",
        source="S. Williams et al., Roofline: an insightful visual performance model for multicore architectures, 2009",
    ),
    Term(
        "Operational intensity",
        "FLOPs by bytes moved to and from device memory. Left of the ridge memory binds, right of it compute.",
        formula="FLOPs / bytes",
        unit="FLOPs per byte",
        source="S. Williams et al., Roofline: an insightful visual performance model for multicore architectures, 2009",
    ),
    Term(
        "Reached",
        "The best rates that operations of this run reached, with a thousandth of all time, three executions "
        "and a microsecond each.",
        unit="FLOP/s, bytes/s",
    ),
    *(Term(f"Bound: {TITLES[b]}", f"{text[0].upper()}{text[1:]}.") for b, text in BOUNDS.items()),
)
