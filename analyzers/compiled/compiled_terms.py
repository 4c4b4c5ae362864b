"""What the figures of `compiled` mean."""

from catalog.terms import Term

TERMS = (
    Term(
        "Bytes",
        "Of one chip, padded as the compiler lays them out; GB are 10⁹ bytes. Peak: the most at once.",
        unit="bytes",
    ),
    Term(
        "FLOPs",
        "What one chip executes in a step, recomputation included: operations times executions.",
        formula="sum of FLOPs of an operation x its executions",
        unit="FLOPs",
    ),
    Term(
        "Estimated cycles",
        "The compiler's own estimate for each fusion times executions, on one device.",
        formula="sum of cycles of a fusion x its executions",
        unit="cycles",
    ),
    Term(
        "Collective bytes",
        "Operands of one chip in a step. What passes the links depends on the algorithm.",
        unit="bytes",
    ),
    Term(
        "Least time",
        "Operations one after another, each at its roof (as on the page Roofline), padding of matrix products at its "
        "least, and collectives that no computation covers at the speed of the links. The ledger holds the same time.",
        formula="sum of max(FLOPs / peak, bytes / HBM bandwidth) + padding / peak + uncovered bytes / links",
        unit="s",
    ),
    Term(
        "MFU at best",
        "Model FLOPs by the causal convention over what all chips could compute in the least time.",
        formula="model FLOPs / (least time x chips x peak)",
        unit="1",
    ),
)
