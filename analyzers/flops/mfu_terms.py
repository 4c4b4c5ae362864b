"""What the figures of `mfu` mean."""

from catalog.flops import CONVENTIONS
from catalog.terms import Term

TERMS = (
    Term(
        "MFU",
        "Model FLOPs utilisation: useful FLOPs of usual steps (kept, plausible, not the first of their attempt) "
        "over their time, as a share of the peak of the number formats that ran: 1/P = sum of f_i / P_i.",
    ),
    Term("HFU", "Hardware FLOPs utilisation: the same with recomputed FLOPs added."),
    Term("EMFU", "The same FLOPs over the BF16 peak, whatever formats ran; may exceed 100 %."),
    Term("Best step", "The highest MFU of a kept, plausible step that is not the first of its attempt."),
    Term(
        "Average",
        "Useful FLOPs of all kept steps over the wall time from the first step to the last: restarts, saves "
        "and lost steps included.",
    ),
    *(Term(f"Convention: {c.title}", f"{c.formula}. Used by: {c.used_by}.") for c in CONVENTIONS),
)
