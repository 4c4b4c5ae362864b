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
        "Wasted below the roof",
        "Time beyond the least that the FLOPs and bytes of an operation need at the device's peaks, over operations of "
        "which these are known. Collectives, waiting and what nobody counts are no part of it.",
        formula="time - max(FLOPs / peak FLOP/s, bytes / peak bytes/s)",
        unit="s",
    ),
    Term(
        "One execution",
        "From the start of an operation to its end, with what is nested in it: mean, shortest and longest of all.",
        unit="s",
    ),
    Term(
        "Launch shape",
        "The grid (blocks) and the block (threads) that most kernels of an operation were launched with.",
    ),
    Term(
        "On tensor cores",
        "Of the time of matrix products and convolutions on a GPU the part in kernels whose names tell of tensor cores "
        "(of AMD: matrix cores), over the time in kernels whose names tell which unit they use.",
        formula="time on tensor cores / (time - time of kernels that do not tell)",
        unit="1",
    ),
    Term(
        "FLOP/s, bytes/s",
        "Of one device while the operation runs, by what the compiler counts for one execution.",
        formula="FLOPs / time; bytes / time",
        unit="FLOP/s, bytes/s",
    ),
)
