"""What the comparison of several runs means by its names."""

from analyzers.several.curves import POINTS
from analyzers.several.differing import MOST
from catalog.terms import Term

TERMS = (
    Term(
        "Differs",
        "A setting or figure that at least two of the runs tell, and tell differently. What some of them alone tell "
        f"is counted apart: it is no difference that is known. Up to {MOST} runs are laid beside one another.",
    ),
    Term(
        "Against the baseline",
        "A figure over that of the run chosen as baseline, less 1, of runs of the same kind and model alone. "
        "Of step time there is a range besides: that of the comparison of two runs, of means of settled steps, where "
        "the table shows medians.",
        formula="value / baseline - 1",
        unit="1",
    ),
    Term(
        "Curves of several runs",
        "Step time, tokens/s and MFU of settled steps; the first of an attempt, those before the pace settled, stalls "
        "and those that cannot be true are set apart, and hollow. Loss of every kept step that tells it. Of more than "
        f"{POINTS} steps each point is the median of a stretch of equally many. Smoothed is the mean of neighbours, as "
        "many to either side.",
    ),
)
