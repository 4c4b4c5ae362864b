"""What the figures of `overlap` mean."""

from catalog.terms import Term

TERMS = (
    Term("Computing", "At least one operation that computes runs on the device.", unit="s"),
    Term(
        "Communication",
        "A collective runs, or waits for its peers. Overlapped: under computing; exposed: not.",
        unit="s",
    ),
    Term(
        "Hidden",
        "Overlapped communication over all communication; HTA's communication-computation overlap.",
        formula="overlapped communication / communication",
        unit="1",
        source="Holistic Trace Analysis (HTA), communication-computation overlap",
    ),
    Term(
        "Copies alone",
        "Memory is copied or filled (HTA's memory kernels) under neither computing nor communication.",
        unit="s",
        source="Holistic Trace Analysis (HTA), memory kernels",
    ),
    Term(
        "Idle in the window",
        "None of the three. Computing, exposed communication, copies alone and idle make up the window exactly.",
        formula="window - computing - exposed communication - copies alone",
        unit="s",
    ),
)
