"""What the figures of `operations` mean."""

from catalog.terms import Term

TERMS = (
    Term(
        "Self time",
        "Time of an operation less that of operations nested in it, so a loop has only its own overhead.",
        formula="time of the operation - time of those nested in it",
        unit="s",
    ),
    Term(
        "Device time",
        "Self time of all operations on the devices' own lines, added over devices. Idle time is not in it.",
        formula="sum of self times over devices",
        unit="s",
    ),
    Term(
        "Of its roof",
        "The least time by FLOPs, bytes and the device's peaks, by the time of the operations that have "
        "one. Collectives, waits and work that nobody counts have none.",
        formula="least time / time, over operations that have a least time",
        unit="1",
    ),
    Term(
        "FLOP/s, bytes/s",
        "Of one device while the operation runs, by what the compiler counts for one execution.",
        formula="FLOPs / time; bytes / time",
        unit="FLOP/s, bytes/s",
    ),
)
