"""What the figures of `compiled` mean."""

from catalog.terms import Term

TERMS = (
    Term("Bytes", "Of one chip, padded as the compiler lays them out; GB are 10⁹ bytes. Peak: the most at once."),
    Term("FLOPs", "What one chip executes in a step, recomputation included: operations times executions."),
    Term("Estimated cycles", "The compiler's own estimate for each fusion times executions, on one device."),
    Term("Collective bytes", "Operands of one chip in a step. What passes the links depends on the algorithm."),
    Term(
        "Least time",
        "The largest of FLOPs / peak, memory bytes / HBM bandwidth, least bytes that leave a chip / its links.",
    ),
    Term("MFU at best", "Model FLOPs by the causal convention over what all chips could compute in the least time."),
)
