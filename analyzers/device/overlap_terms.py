"""What the figures of `overlap` mean."""

from catalog.terms import Term

TERMS = (
    Term("Computing", "At least one operation that computes runs on the device."),
    Term("Communication", "A collective runs, or waits for its peers. Overlapped: under computing; exposed: not."),
    Term("Hidden", "Overlapped communication over all communication; HTA's communication-computation overlap."),
    Term(
        "Copies alone", "Memory is copied or filled (HTA's memory kernels) under neither computing nor communication."
    ),
    Term(
        "Idle", "None of the three. Computing, exposed communication, copies alone and idle make up the window exactly."
    ),
)
