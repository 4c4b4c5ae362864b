"""What the figures of `mfu` mean."""

from catalog.flops_terms import CONVENTION_TERMS
from catalog.terms import Term

TERMS = (
    Term(
        "MFU",
        "Model FLOPs utilisation: useful FLOPs of usual steps (kept, plausible, not the first of their attempt) "
        "over their time without the pauses that the job recorded, as a share of the peak of the number formats that "
        "ran: 1/P = sum of f_i / P_i.",
        formula="useful FLOPs / (time x P), 1/P = sum of f_i / P_i",
        unit="1",
        source="A. Chowdhery et al., PaLM, arXiv 2204.02311, appendix B",
    ),
    Term(
        "HFU",
        "Hardware FLOPs utilisation: the same with recomputed FLOPs added, once: where FLOPs are counted by the shapes "
        "that ran, or by a convention of hardware FLOPs, they are among them.",
        formula="(useful + recomputed FLOPs) / (time x P)",
        unit="1",
        source="V. Korthikanti et al., Reducing activation recomputation in large transformer models, arXiv 2205.05198",
    ),
    Term(
        "EMFU",
        "The same FLOPs over the BF16 peak, whatever formats ran; may exceed 100 %.",
        formula="useful FLOPs / (time x BF16 peak)",
        unit="1",
    ),
    Term(
        "Best step",
        "The highest MFU of a kept, plausible step that is not the first of its attempt.",
        formula="max over usual steps of MFU",
        unit="1",
    ),
    Term(
        "Average MFU",
        "Useful FLOPs of all kept steps over the wall time from the first step to the last: restarts, saves "
        "and lost steps included. Not known where profiles alone tell of steps and saw only some of them.",
        formula="useful FLOPs of all kept steps / (wall time x P)",
        unit="1",
    ),
    *CONVENTION_TERMS,
)
